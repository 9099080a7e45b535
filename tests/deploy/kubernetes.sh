#!/bin/sh
# kubernetes.sh TROUPE: the pods of the manifest as processes, each with the command line that it has there. In
# a mount namespace of their own, /etc/hosts gives their names the addresses 127.0.1.N: as in a cluster, all
# serve the same port, each at its own address.
set -eu
[ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null || { echo "skipped: no mount namespaces"; exit 77; }
python3 -c 'import yaml' 2>/dev/null || { echo "skipped: no python3-yaml"; exit 77; }
exec unshare --mount python3 "$(dirname "$0")/kubernetes.py" "$1"
