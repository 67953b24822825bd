#!/bin/sh
# A shared library exports what its header declares, has its SONAME and needs nothing but the C library, and NEEDED.
#   symbols.sh NM READELF LIBRARY HEADER SONAME [NEEDED]
set -eu
nm=$1 readelf=$2 library=$3 header=$4 soname=$5 besides=${6:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$nm" -D --defined-only "$library" | awk '{ print $3 }' | sort >"$folder/exported"
# A declaration is a line, or the line after ADEAD_API, with a name before its parenthesis.
sed -n '/^ADEAD_API/ { /(/! N; s/.*[ *]\(adead_[a-z0-9_]*\)(.*/\1/p; }' "$header" | sort >"$folder/declared"
if ! diff "$folder/declared" "$folder/exported"; then
  echo "< is declared in the header only, > is exported only"
  exit 1
fi
test -s "$folder/declared"

"$readelf" -d "$library" >"$folder/dynamic"
grep 'SONAME' "$folder/dynamic" | grep -qF "[$soname]" || { echo "the SONAME is not $soname"; exit 1; }
needed=$(sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' "$folder/dynamic")
for name in $needed; do
  case $name in
    libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux* | "$besides") ;;
    *) echo "the library needs $name"; exit 1 ;;
  esac
done
echo "$(wc -l <"$folder/declared") functions, SONAME $soname, needs" $needed
