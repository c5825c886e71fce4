package redisstore

import (
	"crypto/rand"
	"embed"
	"maps"
	"slices"
	"strings"

	"commerce/auth/script"
)

//go:embed lua/*.lua
var lua embed.FS

// scriptFiles lists the scripts that write carts, by name: the files of lua/ that come before the
// file of that name.
var scriptFiles = map[string][]string{
	"renew":   {"cart"},
	"add":     {"cart", "stamps", "keys", "change", "bounds", "room"},
	"set":     {"cart", "stamps", "keys", "change", "bounds"},
	"edit":    {"cart", "stamps", "keys", "change", "bounds", "room"},
	"remove":  {"cart", "stamps", "keys", "change"},
	"clear":   {"cart", "stamps", "keys", "change"},
	"coupon":  {"cart", "stamps", "keys", "change"},
	"check":   {"cart", "stamps", "keys", "change"},
	"reserve": {"cart", "room"},
	"claim":   {"cart", "stamps"},
	"apply":   {"cart", "stamps", "keys"},
	"finish":  {"cart"},
	"forget":  {"cart"},
}

// scripts are the scripts by name.
type scripts map[string]script.Script

func newScripts() scripts {
	all := scripts{}
	for name, files := range scriptFiles {
		var source strings.Builder
		for _, file := range append(slices.Clone(files), name) {
			part, _ := lua.ReadFile("lua/" + file + ".lua") // the files are embedded, and tests load all of them
			source.Write(part)
			source.WriteByte('\n')
		}
		all[name] = script.New(name, source.String())
	}
	return all
}

// ScriptNames lists the names of all scripts. The commands that run them have these names as
// their FullName.
func ScriptNames() []string { return slices.Sorted(maps.Keys(scriptFiles)) }

// mark is the mark of the version that a script makes: six random characters. It is drawn whenever
// go-redis writes the command, so that a command that runs on a master and on its successor does
// not give the same mark to two histories. In Lua, every server draws the same random numbers.
type mark struct{}

// MarshalBinary returns what go-redis writes.
func (mark) MarshalBinary() ([]byte, error) { return []byte(rand.Text()[:6]), nil }
