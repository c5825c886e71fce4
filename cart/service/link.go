package service

import (
	"time"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// Link is a code that opens a cart for whoever has it.
type Link struct {
	Code      string
	ExpiresAt time.Time
	URL       string // of the page that opens it; "" if the store has none
}

// LinkTo returns a link. The URL has the code in its fragment, which no server gets.
func LinkTo(v *Visit, kind, code string, ends time.Time) Link {
	l := Link{Code: code, ExpiresAt: ends}
	if v.Store.CartURL != "" {
		l.URL = v.Store.CartURL + "#" + kind + "=" + code
	}
	return l
}

// GuessableKey is the refusal of an idempotency key from which a secret would be derived, and that others may send
// too: see auth.GuessableKey. name is where it was sent.
func GuessableKey(name string) *problem.Error {
	return problem.New(problem.InvalidParameter, name, textGuessableKey, name)
}

var textGuessableKey = locale.Text{
	locale.En: "The %s must be random and have 22 to 255 visible ASCII characters.",
	locale.Ar: "يجب أن يكون %s عشوائيًا ومكوّنًا من 22 إلى 255 حرفًا مرئيًا من ASCII.",
}
