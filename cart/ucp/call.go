package ucp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/service"
	"commerce/cart/ucp/agent"
	"commerce/cart/ucp/platform"
	"commerce/cart/wire"
)

type operation string

const (
	create operation = "create_cart"
	get    operation = "get_cart"
	update operation = "update_cart"
	cancel operation = "cancel_cart"
)

type call struct {
	*gin.Context
	api      *API
	caller   agent.Agent
	language locale.Locale

	operation operation
	id        string      // of the cart; "" to create one
	key       string      // Idempotency-Key; "" for none
	cart      wire.Object // what the agent sent of the cart; nil for nothing
	sent      []byte      // the same as it was sent

	release *release
	active  map[string]platform.Capability // that both sides support
}

type result struct {
	status int
	tag    string // ETag; "" for none
	body   []byte
}

func (a *API) begin(g *gin.Context) (*call, error) {
	client := wire.Client(g)
	store, err := a.Callers.AgentStore(g.Request, g.Param("key"), client)
	if err != nil {
		return nil, err
	}
	return &call{
		Context: g, api: a, caller: agent.Agent{Store: store, Client: client},
		language: locale.Match(g.GetHeader("Accept-Language"), store.Locale),
	}, nil
}

func (c *call) answer(status int, data func(*wire.Writer)) wire.Answer {
	return wire.Answer{Status: status, Data: data, Language: c.language, Store: c.caller.Store.ID, Caller: wire.Agent}
}

func (c *call) failed(write wire.Failure) wire.Answer {
	a := c.answer(0, nil)
	a.Failure = write
	return a
}

// run runs a call. Its errors are those of the protocol; other refusals are results.
func (c *call) run(ctx context.Context) (result, error) {
	on, err := c.conditions()
	if err != nil {
		return result{}, err
	}
	if err := c.negotiate(ctx); err != nil {
		return result{}, err
	}
	if err := c.api.Limit(c.caller.Profile, c.operation == get); err != nil {
		return result{}, err
	}
	if _, ok := c.active[cartCapability]; !ok {
		return c.refused(message{code: "capabilities_incompatible", severity: unrecoverable, content: textIncompatible.With(c.release.version)}), nil
	}
	read := c.read()
	v, ok := c.visit()
	if !ok {
		return c.notFound(), nil
	}
	kept, err := c.api.agents.Once(ctx, v, on.Key, on.Fingerprint, func(ctx context.Context) ([]byte, error) {
		if read.faults != nil {
			return c.refused(read.messages()...).encode(), nil
		}
		r, err := c.do(ctx, v, on, read)
		return r.encode(), err
	})
	if err != nil {
		return result{}, err
	}
	return decodeResult(kept), nil
}

func (c *call) do(ctx context.Context, v *agent.Visit, on service.Conditions, read request) (result, error) {
	var shown agent.Cart
	var err error
	switch c.operation {
	case create:
		shown, err = c.api.agents.Create(ctx, v, on, read.Replacement)
	case get:
		shown, err = c.api.agents.Read(ctx, v)
	case update:
		shown, err = c.api.agents.Replace(ctx, v, on, read.Replacement)
	case cancel:
		shown, err = c.api.agents.Cancel(ctx, v, on, read.Elements...)
	}
	known, _ := errors.AsType[*problem.Error](err)
	switch {
	case errors.Is(err, agent.ErrChangedUnseen):
		content := textChanged.With()
		if len(shown.Lines) == 0 { // so it shows no line id
			content = textEmptied.With(c.api.agents.ShownIDs(shown)(""))
		}
		// Warnings about its codes would point at those of the cart.
		warnings := slices.DeleteFunc(read.warnings, func(m message) bool { return strings.HasPrefix(m.path, "$.discounts.") })
		return c.show(v, &shown, request{warnings: warnings}, message{code: "cart_changed", severity: recoverable, content: content}), nil
	case known != nil && known.Code == problem.NotFound:
		return c.notFound(), nil
	case err != nil:
		return result{}, err
	case c.operation == create && len(read.Elements) == 0:
		return c.refused(message{code: problem.CartEmpty, severity: unrecoverable, content: cart.ErrEmpty.Faults[0].Sentence}), nil
	case c.operation == create && !shown.Created:
		return c.refused(append(read.errors(), faultMessages(shown.Faults, true)...)...), nil
	}
	if shown.Durability != "" {
		c.Header("Durability", shown.Durability)
	}
	r := c.show(v, &shown, read)
	if c.operation == create {
		r.status = http.StatusCreated
	}
	return r, nil
}

// visit opens the cart of the call. It reports false for an ID that none of our carts has.
func (c *call) visit() (*agent.Visit, bool) {
	if c.operation == create {
		return c.api.agents.NewVisit(c.caller, c.key), true
	}
	return c.api.agents.Visit(c.caller, c.id)
}

// checkKey refuses an Idempotency-Key that cannot have 128 random bits. name is where it was sent.
func checkKey(name, key string) error {
	if auth.GuessableKey(key) || !wire.ValidKey(key) {
		return service.GuessableKey(name)
	}
	return nil
}

func (c *call) conditions() (on service.Conditions, err error) {
	if c.operation == get {
		return on, nil
	}
	if c.key != "" {
		on.Key = wire.Digest(c.key)
		on.Fingerprint = wire.Digest(string(c.operation), c.id, string(c.sent))
	}
	match, err := wire.ParseTags(c.Request.Header, "If-Match")
	on.IfMatch = match.Versions()
	return on, err
}

func (c *call) negotiate(ctx context.Context) error {
	profile, fault := c.api.profiles.Profile(ctx, platform.Request{
		URL: c.caller.Profile, Client: c.caller.Client, Loopback: auth.IsLocal(c.Request) && c.GetHeader("Origin") == "", // not from a page
	})
	if fault != nil {
		return fault
	}
	if c.release = releaseOf(profile.Version); c.release == nil {
		return platform.NewFault("version_unsupported", http.StatusUnprocessableEntity, textVersion, profile.Version, strings.Join(versions(), ", "))
	}
	c.active = platform.Negotiate(c.release.capabilities(), profile.Capabilities)
	return nil
}

func (r result) encode() []byte {
	return slices.Concat(fmt.Appendf(nil, "%d %s\n", r.status, r.tag), r.body)
}

func decodeResult(kept []byte) (r result) {
	head, body, _ := bytes.Cut(kept, []byte("\n"))
	_, _ = fmt.Sscanf(string(head), "%d %s", &r.status, &r.tag) // "" if there is no tag
	r.body = body
	return r
}

var (
	textIncompatible = locale.Text{
		locale.En: "The platform does not support the capability dev.ucp.shopping.cart of release %s.",
		locale.Ar: "لا تدعم المنصة القدرة dev.ucp.shopping.cart من الإصدار %s.",
	}
	textVersion = locale.Text{
		locale.En: "Protocol version %s is not supported. This business supports: %s.",
		locale.Ar: "إصدار البروتوكول %s غير مدعوم. يدعم هذا المتجر: %s.",
	}
	textChanged = locale.Text{
		locale.En: "The cart has changed since you read it, so nothing was applied. This is the cart now. Check it, and send your change again with these line ids.",
		locale.Ar: "تغيّرت السلة منذ أن قرأتها، فلم يُطبّق شيء. هذه هي السلة الآن. راجعها ثم أعد إرسال تغييرك بمعرّفات البنود هذه.",
	}
	textEmptied = locale.Text{
		locale.En: "The cart has changed since you read it and is empty now, so nothing was applied. To go on, send your lines with this id: %s",
		locale.Ar: "تغيّرت السلة منذ أن قرأتها وهي فارغة الآن، فلم يُطبّق شيء. للمتابعة أرسل بنودك بهذا المعرّف: %s",
	}
)
