"""Checks Kubernetes manifests against the schemas of its versions, and prints them as JSON.

    manifests.py VERSION,VERSION… FILE…

The schemas are those of kubernetes-validate, and strict: a field that they do not know is
a fault.
"""

import json
import sys

import kubernetes_validate
import yaml


def main(versions, *files):
    documents, faults = [], []
    for file in files:
        with open(file, encoding="utf-8") as f:
            loaded = list(yaml.safe_load_all(f))
        documents += loaded
        for document in loaded:
            for version in versions.split(","):
                try:
                    kubernetes_validate.validate(document, version, strict=True)
                except kubernetes_validate.ValidationError as e:
                    faults.append(f"{file}: {document['kind']} {document['metadata']['name']}, Kubernetes {version}: {'.'.join(map(str, e.path))}: {e.message}")
    json.dump({"documents": documents, "faults": faults}, sys.stdout)


main(*sys.argv[1:])
