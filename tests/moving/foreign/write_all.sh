#!/bin/sh
# Writes data/ again with the real packages, each in the environment that `make foreign` makes.
set -eu
cd "$(dirname "$0")/../../.."
scripts=tests/moving/foreign
data=$scripts/data
port=${PORT:-7391}

write() {
    environment=$1 script=$2
    shift 2
    ".venv-foreign-$environment/bin/python" "$scripts/write_$script.py" "$data" "$@"
}

folder=$(mktemp -d)
redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$folder" >"$folder/log" &
server=$!
trap 'kill $server; rm -rf "$folder"' EXIT
sleep 1

rm -rf "$data"
mkdir -p "$data"
write agentscope agentscope "$port"
write agentscope-runtime agentscope_runtime "$port"
write langchain langchain
write langgraph langgraph
write mem0-1 mem0
write mem0-2 mem0
write openai-agents openai_agents
write reme reme
rm -f "$data"/mem0v?/qdrant/.lock "$data"/mem0v?/qdrant/meta.json
