package redisstore

import (
	_ "embed"

	"commerce/auth/script"
)

//go:embed commit.lua
var commitLua string

func newScript() script.Script { return script.New(ScriptName, commitLua) }

// ScriptName is the FullName of the commands that run the script.
const ScriptName = "commit"
