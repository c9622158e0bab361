"""Runs all tests beside it; fails if one does, or warns of what is deprecated."""

import pathlib
import sys
import unittest
import warnings

if __name__ == "__main__":
    warnings.simplefilter("error", DeprecationWarning)
    found = unittest.TestLoader().discover(str(pathlib.Path(__file__).parent))
    result = unittest.TextTestRunner(stream=sys.stderr).run(found)
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 30 else 1)
