package ucp

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/handover"
	"commerce/cart/ucp/agent"
	"commerce/cart/wire"
)

// permalink leads a browser to the store's page with a code of the items in the URL. It stores nothing, because robots
// open links too. A browser with a URL that cannot be read gets the page alone.
func (a *API) permalink(g *gin.Context) (wire.Answer, error) {
	client := wire.Client(g)
	of, err := a.Callers.AgentStore(g.Request, g.Param("key"), client)
	if err == nil && of.CartURL == "" {
		err = errNoPage
	}
	if err != nil {
		return wire.Answer{}, err
	}
	c := &call{Context: g, language: locale.Match(g.GetHeader("Accept-Language"), of.Locale)}
	c.caller.Store = of
	g.Header("Referrer-Policy", "no-referrer")
	v := a.Carts.GuestVisit(of, "", client)
	if refused := a.Carts.RefuseCreation(v, 0); refused != nil {
		return c.failed(nil), refused
	}
	location := of.CartURL
	link, fault := readPermalink(g.Param("items"), g.Request.URL.RawQuery)
	switch {
	case fault == nil:
		offer := handover.New(a.Carts).OfferItems(v, link.items)
		location = withQuery(location, link.passed) + strings.TrimPrefix(offer.URL, location)
	case !strings.Contains(g.GetHeader("Accept"), "text/html"):
		return c.failed(restFailure(location)), fault
	}
	g.Header("Location", location)
	g.Header("Cache-Control", "no-store")
	g.Status(http.StatusSeeOther)
	return c.answer(http.StatusSeeOther, nil), nil
}

type permalink struct {
	items  handover.Items
	passed url.Values // on to the page
}

const maxPermalink = 8 << 10 // bytes

// readPermalink reads what follows the endpoint of permalinks. Of the protocol's members, discount codes and the buyer's country
// count. The items of the path take precedence over line_items, and the store's page over continue_to.
func readPermalink(path, query string) (p permalink, _ *problem.Error) {
	if len(path)+len(query) > maxPermalink {
		return p, badLink("items", textLinkTooLong, maxPermalink)
	}
	for pair := range strings.SplitSeq(path, ",") {
		item, ok := readPair(pair)
		if !ok || len(p.items.Lines) == maxElements {
			return p, badLink("items", textPairs, maxElements)
		}
		p.items.Lines = append(p.items.Lines, item)
	}
	parameters, err := url.ParseQuery(strings.ReplaceAll(query, ";", "%3B")) // which browsers do not escape
	if err != nil {
		return p, badLink("query", textQuery)
	}
	members, codes := map[string]bool{}, map[int]string{}
	p.passed = url.Values{}
	for name, values := range parameters {
		if unreadable(name) || slices.ContainsFunc(values, unreadable) {
			return p, badLink("query", textQuery)
		}
		member := strings.TrimLeft(name, "/")
		root, _, _ := strings.Cut(member, "/")
		switch {
		case name == "continue_to":
		case !slices.Contains(linkRoots, root):
			if !sensitive.MatchString(name) {
				p.passed[name] = values
			}
		case members[member], len(values) > 1:
			return p, badLink("query", textTwice, problem.Excerpt(member))
		default:
			members[member] = true
			if text, ok := strings.CutPrefix(member, "discounts/codes/"); ok && place.MatchString(text) && values[0] != "" {
				i, _ := strconv.Atoi(text)
				codes[i] = values[0]
			} else if member == "context/address_country" {
				p.items.Country = cart.ParseCountry(values[0])
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(codes)) {
		p.items.Codes = append(p.items.Codes, codes[i])
	}
	return p, nil
}

// linkRoots are the members of the protocol's carts and checkouts that a link can fill.
var linkRoots = []string{
	"actions", "attribution", "buyer", "cart_id", "context", "continue_url", "currency", "discounts", "expires_at", "fulfillment", "id",
	"line_items", "links", "messages", "order", "payment", "policies", "signals", "status", "totals", "ucp",
}

var (
	place = regexp.MustCompile(`^(?:[0-9]|[1-4][0-9])$`) // of one of maxCodes

	// sensitive are the names of parameters that are not passed on.
	sensitive = regexp.MustCompile(`(?i)token|secret|passw|key|auth|session|cookie|credential|mandate|^(?:code|otp|pin|jwt|cvc)$`)

	rawID = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
)

// readPair reads an item's id and its quantity, such as 4.p41:2. An id in base64url has a tilde before it.
func readPair(pair string) (item handover.Item, ok bool) {
	id, quantity, _ := strings.Cut(pair, ":")
	if encoded, is := strings.CutPrefix(id, "~"); is {
		raw, err := base64.RawURLEncoding.DecodeString(encoded)
		if id = string(raw); err != nil || base64.RawURLEncoding.EncodeToString(raw) != encoded || id == "" || unreadable(id) {
			return item, false
		}
	} else if !rawID.MatchString(id) {
		return item, false
	}
	n, err := strconv.ParseInt(quantity, 10, 64)
	if err != nil || n < 1 || n > maxQuantity || strconv.FormatInt(n, 10) != quantity {
		return item, false
	}
	item.Quantity = n
	item.Product, item.Plan, _ = agent.ParseItem(id)
	return item, true
}

func unreadable(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl)
}

// withQuery adds parameters to the URL of a page, except for those that it has.
func withQuery(page string, more url.Values) string {
	u, err := url.Parse(page)
	if err != nil || len(more) == 0 {
		return page
	}
	own := u.Query()
	maps.Copy(more, own)
	u.RawQuery = more.Encode()
	return u.String()
}

func badLink(member string, text locale.Text, args ...any) *problem.Error {
	return problem.New(problem.InvalidParameter, member, text, args...)
}

var (
	errNoPage = problem.New(problem.NotFound, "", locale.Text{
		locale.En: "This shop has no page for links.",
		locale.Ar: "ليس لهذا المتجر صفحة للروابط.",
	})
	textPairs = locale.Text{
		locale.En: "The items in the path must be pairs of an item's id and a quantity, such as 42:2,4.p41:1. There can be at most %d.",
		locale.Ar: "يجب أن تكون المنتجات في المسار أزواجًا من معرّف المنتج والكمية، مثل 42:2,4.p41:1، وبحد أقصى %d.",
	}
	textLinkTooLong = locale.Text{
		locale.En: "The items and the query can have at most %d bytes together.",
		locale.Ar: "يجب ألا يتجاوز حجم المنتجات والاستعلام معًا %d بايت.",
	}
	textQuery = locale.Text{
		locale.En: "The query of the URL cannot be read: it must be UTF-8 without control characters.",
		locale.Ar: "تعذرت قراءة استعلام الرابط: يجب أن يكون UTF-8 بلا أحرف تحكم.",
	}
	textTwice = locale.Text{
		locale.En: "The query has more than one value for %s.",
		locale.Ar: "يحتوي الاستعلام على أكثر من قيمة لـ %s.",
	}
)
