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
	"ops":     {"cart", "stamps", "keys", "change", "bounds", "room", "texts", "add", "set", "edit", "remove", "clear", "coupon", "metadata"},
	"check":   {"cart", "stamps", "keys", "change"},
	"reserve": {"cart", "room"},
	"claim":   {"cart", "stamps"},
	"apply":   {"cart", "stamps", "keys", "texts"},
	"finish":  {"cart"},
	"forget":  {"cart"},
}

// operationFiles lists the operations, of which each is also a script of its own: the files that come
// between change.lua and the file of that name.
var operationFiles = map[string][]string{
	"add":      {"bounds", "room", "texts"},
	"set":      {"bounds"},
	"edit":     {"bounds", "room", "texts"},
	"remove":   nil,
	"clear":    nil,
	"coupon":   nil,
	"metadata": {"room", "texts"},
}

// scripts are the scripts by name.
type scripts map[string]script.Script

func newScripts() scripts {
	all := scripts{}
	for name, files := range scriptFiles {
		all[name] = script.New(name, sourceOf(append(slices.Clone(files), name)))
	}
	for name, files := range operationFiles {
		source := sourceOf(slices.Concat([]string{"cart", "stamps", "keys", "change"}, files, []string{name}))
		all[name] = script.New(name, source+"return conclude("+name+"(hash, 10))\n")
	}
	return all
}

// sourceOf joins files of lua/.
func sourceOf(files []string) string {
	var source strings.Builder
	for _, file := range files {
		part, _ := lua.ReadFile("lua/" + file + ".lua") // the files are embedded, and tests load all of them
		source.Write(part)
		source.WriteByte('\n')
	}
	return source.String()
}

// ScriptNames lists the names of all scripts. The commands that run them have these names as
// their FullName.
func ScriptNames() []string { return slices.Sorted(maps.Keys(newScripts())) }

// mark is the mark of the version that a script makes: six random characters. It is drawn whenever
// go-redis writes the command, so that a command that runs on a master and on its successor does
// not give the same mark to two histories. In Lua, every server draws the same random numbers.
type mark struct{}

// MarshalBinary returns what go-redis writes.
func (mark) MarshalBinary() ([]byte, error) { return []byte(rand.Text()[:6]), nil }
