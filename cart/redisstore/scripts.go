package redisstore

import (
	"crypto/rand"
	"embed"
	"strings"

	"commerce/auth/script"
)

//go:embed lua/*.lua
var lua embed.FS

// scripts are all scripts that write carts. Each is atomic in one slot.
type scripts struct {
	renew, add, set, edit, remove, clear, coupon, check script.Script
	reserve, claim, apply, finish, forget               script.Script
}

func newScripts() scripts {
	change := func(rule ...string) script.Script {
		return newScript(append([]string{"cart", "stamps", "keys", "change"}, rule...)...)
	}
	return scripts{
		renew:   newScript("cart", "renew"),
		add:     change("bounds", "room", "add"),
		set:     change("bounds", "set"),
		edit:    change("bounds", "room", "edit"),
		remove:  change("remove"),
		clear:   change("clear"),
		coupon:  change("coupon"),
		check:   change("check"),
		reserve: newScript("cart", "room", "reserve"),
		claim:   newScript("cart", "stamps", "claim"),
		apply:   newScript("cart", "stamps", "keys", "apply"),
		finish:  newScript("cart", "finish"),
		forget:  newScript("cart", "forget"),
	}
}

// ScriptNames lists the names of all scripts. The commands that run them have these names as
// their FullName.
func ScriptNames() []string {
	all := newScripts()
	return []string{
		all.renew.Name, all.add.Name, all.set.Name, all.edit.Name, all.remove.Name, all.clear.Name, all.coupon.Name,
		all.check.Name, all.reserve.Name, all.claim.Name, all.apply.Name, all.finish.Name, all.forget.Name,
	}
}

// newScript concatenates files of lua/. The last one gives the script its name.
func newScript(files ...string) script.Script {
	parts := make([]string, len(files))
	for i, file := range files {
		part, _ := lua.ReadFile("lua/" + file + ".lua") // the files are embedded, and tests load all of them
		parts[i] = string(part)
	}
	return script.New(files[len(files)-1], strings.Join(parts, "\n"))
}

// mark is the mark of the version that a script makes: six random characters. It is drawn
// whenever go-redis writes the command, so that a command that runs twice, on a master and on
// its successor, does not give the same mark to two histories. It does not come from Lua, whose
// random numbers begin alike on every server.
type mark struct{}

// MarshalBinary returns what go-redis writes.
func (mark) MarshalBinary() ([]byte, error) { return []byte(rand.Text()[:6]), nil }
