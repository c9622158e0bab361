"""Says whether a file is a valid OpenAPI 3.1 document.

Usage: openapi.py FILE. Faults are printed, a line each, and end it with 1.
"""

import json
import sys

from openapi_spec_validator import OpenAPIV31SpecValidator

with open(sys.argv[1], encoding="utf-8") as file:
    document = json.load(file)

faults = list(OpenAPIV31SpecValidator(document).iter_errors())
for fault in faults:
    print("/".join(map(str, fault.absolute_path)), fault.message[:300])
if faults:
    sys.exit(1)
print(f"valid: {len(document['paths'])} paths")
