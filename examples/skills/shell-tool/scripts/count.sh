#!/bin/sh
set -eu
text="$*"
lines=$(printf '%s\n' "$text" | wc -l)
words=$(printf '%s\n' "$text" | wc -w)
bytes=$(printf '%s\n' "$text" | wc -c)
printf '{"lines": %d, "words": %d, "bytes": %d}\n' "$lines" "$words" "$bytes"
