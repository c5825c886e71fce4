package redisstore

import (
	"embed"
	"maps"
	"slices"
	"strings"

	"commerce/auth/script"
)

//go:embed lua/*.lua
var lua embed.FS

// scriptFiles lists scripts by name: files of lua/ that come before the one of that name.
var scriptFiles = map[string][]string{
	"commit":  nil,
	"renew":   {"cart"},
	"reserve": {"cart", "survey"},
	"claim":   {"cart", "survey", "announce"},
	"apply":   {"cart", "survey", "stamps", "keys", "texts", "announce"},
	"begin":   {"cart"},
	"undo":    {"cart", "announce"},
	"finish":  {"cart"},
	"forget":  {"cart"},
	"attempt": {"cart"},
	"result":  {"cart"},
	"share":   {"cart"},
	"shares":  {"cart"},
	"listen":  {"cart"},
}

// scripts are the scripts by name.
type scripts map[string]script.Script

func newScripts() scripts {
	all := scripts{}
	for name, files := range scriptFiles {
		all[name] = script.New(name, sourceOf(append(slices.Clone(files), name)))
	}
	return all
}

func sourceOf(files []string) string {
	var source strings.Builder
	for _, file := range files {
		part, _ := lua.ReadFile("lua/" + file + ".lua") // the files are embedded, and tests load all of them
		source.Write(part)
		source.WriteByte('\n')
	}
	return source.String()
}

// ScriptNames lists all scripts, by the FullName of the commands that run them.
func ScriptNames() []string { return slices.Sorted(maps.Keys(scriptFiles)) }
