#!/bin/sh
echo "count.sh counts lines, words and bytes"
