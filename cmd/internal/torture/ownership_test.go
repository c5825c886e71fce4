package torture

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
	"commerce/docs"
)

// The test calls every endpoint with every kind of credentials, for the caller's own things and
// for those of others. A few rules say what each answer must be (see visits, programs and
// calls).
func TestPromise12_NobodyReachesAnothersCartOrStore(t *testing.T) {
	t.Parallel()
	ephemeral.Slow(t)
	p := promised(t, 12, "nobody reaches another's cart or store",
		"0 leaks; what others have and what nobody has are answered alike, to the byte")
	o := &ownership{p: p, seen: map[string]bool{}, groups: map[string]map[string]string{}}
	defaults := sized([]int64{storeOne}, []int64{0, storeOne, storeTwo})
	bar := p.progress("settings of DEFAULT_STORE", len(defaults))
	for _, store := range defaults {
		o.mall = openMall(t, store)
		o.run()
		_ = bar.Add(1)
	}
	p.counted("kinds of credentials", int64(o.kinds))
	p.counted("calls", o.cells)
	p.detail("answers that say \"not yours\"", float64(o.foreign), "")
	p.counted("leaks", o.leaks)
	p.counted("answers that differ from \"does not exist\"", o.unlike)
}

type ownership struct {
	*mall
	p    *promise
	seen map[string]bool // owners whose marks they have seen themselves

	groups map[string]map[string]string // by group: the different answers, each with a call that got it

	kinds                         int
	cells, foreign, leaks, unlike int64
}

// run calls all endpoints. The short form omits most combinations, but covers every call and
// every kind of header.
func (o *ownership) run() {
	calls, everyone := o.calls(), o.everyone()
	o.compareRoutes(calls)
	o.kinds = len(everyone)
	clear(o.groups)
	step := sized(7, 1)
	for i, c := range everyone {
		for j, call := range calls {
			if (i+j)%step == 0 || call.alike != "" && i%step == 0 {
				o.try(c, call)
			}
		}
	}
	o.compareGroups()
	for _, owner := range o.owners {
		assert.That(o.p.t, o.seen[owner.name], "the %s has not seen their own cart: the test shows nothing", owner.name)
	}
	for store := range o.programs {
		assert.That(o.p.t, o.seen[fmt.Sprint("store ", store)],
			"store %d has not seen its own subscriptions: the test shows nothing", store)
	}
}

// everyone returns all combinations of credentials.
func (o *ownership) everyone() []credentials {
	var all []credentials
	for _, key := range []publicKey{
		{name: "none"}, {"of store 1", storeOneKey, storeOne}, {"of store 2", storeTwoKey, storeTwo}, {name: "unknown", value: "pk_nobody"},
	} {
		for _, bearer := range bearers(o.t, o.tokens) {
			for _, token := range []cartToken{
				{name: "none"},
				{"of a guest in both stores", guestToken, true},
				{"of the other guest", otherToken, true},
				{"of a merged cart", claimedToken, true},
				{"made up", madeUpToken, true},
				{name: "malformed", value: "too-short"},
			} {
				all = append(all, credentials{key, bearer, token})
			}
		}
	}
	return all
}

// compareRoutes fails if there is an endpoint that is not called.
func (o *ownership) compareRoutes(calls []call) {
	doc := assert.Must(openapi3.NewLoader().LoadFromData(docs.OpenAPI))(o.t)
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			assert.That(o.p.t, slices.ContainsFunc(calls, func(c call) bool { return c.route() == method+" "+path || method == "GET" && c.route() == "HEAD "+path }),
				"%s %s is not tested", method, path)
		}
	}
}

// try makes one call and checks the answer.
func (o *ownership) try(c credentials, call call) {
	v := c.visits(o.defaultStore)
	switch {
	case call.by == programs:
		v = c.programs()
	case call.by == agents && c.bearer.kind >= customerJWT:
		v = refusedVisitor(401, "unauthenticated")
	case call.by == agents:
		v = visitor{store: storeTwo}
	}
	status, code := v.status, v.code
	if status == 0 || call.by == anyone {
		asked := v
		if call.method == "HEAD" {
			asked.guest = cartOf{}
		}
		status, code = call.expected(asked)
	}
	if o.cells++; o.leaks > 20 {
		o.p.t.Fatal("too many leaks")
	}
	a, ok := o.answered(c, call, v)
	coded := code == "" || call.method == "HEAD" || bytes.Contains(a.body, fmt.Appendf(nil, `"code":%q`, code))
	if !ok || a.status != status || !coded {
		o.p.broke("%v, %v: got %d %.300s, want %d %s", call, c, a.status, a.body, status, code)
	}
	if v.status == 0 && call.yours != nil && !call.yours(v) {
		o.foreign++
		o.group(fmt.Sprintf("%s %s, %v", call.method, call.alike, c), call, a)
	}
	if v.status == 0 && call.alike == "cart" && v.cart.sub == "" && c.token.usable && len(o.reaches(v)) == 0 {
		call.named = c.token.value
		o.group(fmt.Sprintf("%s an empty cart, key %s, bearer %s", call.method, c.key.name, c.bearer.name), call, a)
	}
	if call.by == programs && c.bearer.refused != "" {
		call.named = ""
		o.group(call.String()+" with "+c.bearer.refused, call, a)
	}
}

// answered makes a call, and repeats it while the machine is too busy to answer it or to merge
// the guest's cart. No attempt may show or change anything that belongs to another owner.
func (o *ownership) answered(c credentials, call call, v visitor) (a answer, ok bool) {
	for range 20 {
		a = o.ask(c, call.method, call.path, call.body, call.headers...)
		o.compareMarks(c, call, v, a)
		now := o.stored()
		o.compareStored(c, call, v, now)
		o.restore(now)
		if a.status < 500 && (call.by != shoppers || !call.merges() || !o.postponed(v, now)) {
			return a, true
		}
		time.Sleep(50 * time.Millisecond)
	}
	return a, false
}

// merges reports whether a call may merge a guest's cart.
func (c call) merges() bool { return c.method != "HEAD" }

// postponed reports whether the visitor's guest cart still waits to be merged.
func (o *ownership) postponed(v visitor, now map[string]string) bool {
	for _, owner := range o.owners {
		for key := range owner.keys {
			stays := strings.HasSuffix(key, ":keys") || strings.Contains(key, ":shares:") || strings.Contains(key, ":s:")
			if owner.cart == v.guest && !stays && now[key] != "" {
				return true
			}
		}
	}
	return false
}

// compareMarks looks for other owners' marks in an answer.
func (o *ownership) compareMarks(c credentials, call call, v visitor, a answer) {
	reached := o.reaches(v)
	for _, owner := range o.owners {
		switch own := v.status == 0 && call.by != programs && slices.Contains(reached, owner); {
		case call.offered == owner && v.status == 0 && v.store == owner.cart.store:
		case own && a.shows(owner.marks):
			o.seen[owner.name] = true
		case !own && a.shows(owner.without(call.headers)):
			o.leaks++
			o.p.broke("%v, %v: the answer shows the cart of the %s: %.500s", call, c, owner.name, a.body)
		}
	}
	for store, program := range o.programs {
		switch own := v.status == 0 && call.by == programs && v.store == store; {
		case own && a.shows(program.marks):
			o.seen[fmt.Sprint("store ", store)] = true
		case !own && a.shows(without(program.marks, call.path)):
			o.leaks++
			o.p.broke("%v, %v: the answer shows a subscription of store %d: %.500s", call, c, store, a.body)
		}
	}
	if v.cart.sub != "" && call.by == shoppers && (a.header.Get("X-Cart-Token") != "" || bytes.Contains(a.body, []byte(`"cart_token":"`))) {
		o.leaks++
		o.p.broke("%v, %v: a customer got a cart token: %.500s", call, c, a.body)
	}
}

// without returns the marks that the request itself does not contain.
func without(marks []string, request string) []string {
	return slices.DeleteFunc(slices.Clone(marks), func(mark string) bool { return strings.Contains(request, mark) })
}

func (o *owner) without(headers []string) []string {
	return without(o.marks, strings.Join(headers, " "))
}

// compareStored looks for changes in other owners' carts.
func (o *ownership) compareStored(c credentials, call call, v visitor, now map[string]string) {
	changed := func(key string) bool { return now[key] != o.planted[key] }
	for _, owner := range o.owners {
		own := v.status == 0 && call.by != programs && call.by != anyone && (owner.has(v.cart) || owner.has(v.guest))
		if !own && slices.ContainsFunc(slices.Collect(maps.Keys(owner.keys)), changed) {
			o.leaks++
			o.p.broke("%v, %v: the call has changed the cart of the %s", call, c, owner.name)
		}
	}
	mayWrite := v.status == 0 && call.by != programs && call.by != anyone && (call.changes() || call.merges() && o.merges(v))
	if !mayWrite && !maps.Equal(now, o.planted) {
		o.p.broke("%v, %v: the call has changed Redis", call, c)
	}
}

// group remembers an answer for compareGroups.
func (o *ownership) group(name string, call call, a answer) {
	if o.groups[name] == nil {
		o.groups[name] = map[string]string{}
	}
	o.groups[name][a.withoutIDs(call.named)] = call.String()
}

// compareGroups compares the answers that must be equal.
func (o *ownership) compareGroups() {
	for name, answers := range o.groups {
		if len(answers) > 1 {
			o.unlike += int64(len(answers) - 1)
			o.p.broke("%s: %d different answers:\n%s", name, len(answers), strings.Join(slices.Sorted(maps.Keys(answers)), "\n"))
		}
	}
}

var (
	idsAndTimes = regexp.MustCompile(`"(request_id|timestamp|expires_at)":("[^"]*"|\d+)`)
	mergeNames  = regexp.MustCompile(`"merge":\{"id":"[^"]*","at":"[^"]*"`)
)

// withoutIDs returns the status, the headers and the body. It removes everything that differs
// between any two answers, and everything that the request itself has named.
func (a answer) withoutIDs(named string) string {
	header := a.header.Clone()
	header.Del("Date")
	header.Del("X-Request-Id")
	header.Del("ETag") // has the cart's random ID, and a digest of the body with its IDs
	var text bytes.Buffer
	fmt.Fprintln(&text, a.status)
	_ = header.Write(&text)
	text.Write(mergeNames.ReplaceAll(idsAndTimes.ReplaceAll(a.body, []byte(`"$1":"*"`)), []byte(`"merge":{`)))
	var ids []string
	for _, id := range []string{named, url.QueryEscape(named), header.Get("X-Cart-Token")} {
		if id != "" {
			ids = append(ids, id, "*")
		}
	}
	return strings.NewReplacer(ids...).Replace(text.String())
}
