#!/bin/sh
# systemd.sh TROUPE: systemd has nothing to say against the units.
set -eu
command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for unit in examples/deploy/systemd/*.service; do
  # The program is not installed here.
  sed "s,/usr/bin/troupe,$1," "$unit" >"$folder/${unit##*/}"
done
said=$(systemd-analyze verify --man=no "$folder/troupe-worker@3.service" "$folder/troupe-ps@0.service" 2>&1) ||
  { echo "$said"; exit 1; }
# Others' units are none of our business.
! echo "$said" | grep troupe
