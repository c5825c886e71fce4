package redisstore

import (
	"crypto/rand"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"commerce/auth/script"
)

//go:embed lua/*.lua
var lua embed.FS

// scriptFiles lists scripts by name: files of lua/ that come before the one of that name.
var scriptFiles = map[string][]string{
	"renew":   {"cart"},
	"reserve": {"cart", "survey", "room"},
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

// operationFiles lists the operations, by name: the files that come between change.lua and the file
// of that name. Each is also a script of its own, which ends with its outcome.
var operationFiles = map[string][]string{
	"add":      {"survey", "bounds", "room", "texts"},
	"set":      {"lines", "bounds", "growth"},
	"edit":     {"survey", "lines", "bounds", "growth", "room", "texts"},
	"remove":   {"lines"},
	"clear":    nil,
	"coupon":   nil,
	"metadata": {"survey", "room", "texts"},
}

const operationEnd = `
local code, number, line, named = %s(hash, 10)
if code then return reply(code, number) end
return accept(number, not named and line or nil)
`

// repeatFiles lists how the repeat of a change is known, by what the name of its script ends with:
// the files that come between cart.lua and change.lua.
var repeatFiles = map[string][]string{
	"":          {"plain"},
	" by key":   {"keys", "keyed"},
	" by stamp": {"stamps", "stamped"},
}

// scripts are the scripts by name, those of changes with how a repeat is known.
type scripts map[string]script.Script

func newScripts() scripts {
	all := scripts{}
	for name, files := range scriptFiles {
		all[name] = script.New(name, sourceOf(append(slices.Clone(files), name)))
	}
	list := []string{"survey", "lines", "bounds", "growth", "room", "texts"}
	for repeats, files := range repeatFiles {
		prelude := slices.Concat([]string{"cart"}, files, []string{"announce", "change"})
		for name, own := range operationFiles {
			end := fmt.Sprintf(operationEnd, name)
			all[name+repeats] = script.New(name, sourceOf(slices.Concat(prelude, own, []string{name}))+end)
		}
		all["check"+repeats] = script.New("check", sourceOf(append(prelude, "check")))
		all["ops"+repeats] = script.New("ops", sourceOf(slices.Concat(prelude, list, slices.Sorted(maps.Keys(operationFiles)), []string{"agent", "ops"})))
	}
	return all
}

func (s scripts) of(c Change, on Conditions) script.Script {
	switch {
	case on.Key != "":
		return s[c.script+" by key"]
	case on.Stamp != "":
		return s[c.script+" by stamp"]
	}
	return s[c.script]
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
func ScriptNames() []string {
	names := slices.AppendSeq([]string{"check", "ops"}, maps.Keys(scriptFiles))
	return slices.Sorted(slices.Values(slices.AppendSeq(names, maps.Keys(operationFiles))))
}

// mark is the mark of the version that a script makes: six random characters. It is drawn whenever
// go-redis writes the command, so that a command that runs on a master and on its successor does
// not give the same mark to two histories. In Lua, every server draws the same random numbers.
type mark struct{}

// MarshalBinary returns what go-redis writes.
func (mark) MarshalBinary() ([]byte, error) { return []byte(rand.Text()[:6]), nil }
