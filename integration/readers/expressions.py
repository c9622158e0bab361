"""Prints the JSON sub-query that our package makes of each argument."""

import json
import sys

import downpour

for expression in sys.argv[1:]:
    print(json.dumps(downpour.parse(expression)))
