package ucp

import (
	_ "embed"
	"net/url"
	"strings"

	"github.com/gin-gonic/gin"

	"commerce/cart/wire"
)

// profiles is the profile of each store, with {endpoint} for the URL of its calls.
//
//go:embed profile.json
var profiles string

func (a *API) profile(c *gin.Context) (wire.Answer, error) {
	store, err := a.Callers.HostStore(c.Request.Context(), a.Host(c.Request))
	if err != nil {
		return wire.Answer{}, err
	}
	endpoint := a.Origin(c.Request) + a.BasePath + prefix + url.PathEscape(store.PublicKeys[0])
	return wire.Answer{
		Language: store.Locale, Store: store.ID, Caller: wire.Agent, Cache: "public, max-age=300",
		Data: func(w *wire.Writer) { w.Value([]byte(strings.ReplaceAll(profiles, "{endpoint}", endpoint))) },
	}, nil
}
