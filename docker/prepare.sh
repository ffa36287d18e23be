#!/bin/sh
# What has to be done once before the service starts: the schema, a knowledge base, an index build of what is loaded.
# Usage: prepare.sh [PACK]; without PACK nothing is loaded, for a store that is filled by `medlink kb load`.
set -eu
python -m alembic upgrade head
if [ -n "${1:-}" ]; then
    medlink kb load "$1"
fi
medlink index build --if-stale
