"""Fetches a file, if it is the one that is meant: fetch.py ADDRESS SHA256 PATH"""

import hashlib
import pathlib
import sys
import urllib.request

address, wanted, path = sys.argv[1:4]
with urllib.request.urlopen(address, timeout=60) as answer:
    data = answer.read()
if hashlib.sha256(data).hexdigest() != wanted:
    sys.exit(f"{address} is not the file with the SHA-256 {wanted}")
pathlib.Path(path).write_bytes(data)
