package carthttp

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/money"
	"commerce/cart/service"
	"commerce/cart/wire"
	"commerce/deploy/assert"
)

var update = flag.Bool("update", false, "rewrite testdata instead of comparing with it")

// golden compares indented JSON with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var indented bytes.Buffer
	err := json.Indent(&indented, got, "", "  ")
	assert.Require(t, err == nil, "%v in %s", err, got)
	indented.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if *update {
		assert.NoError(t, os.WriteFile(path, indented.Bytes(), 0o644))
		return
	}
	want := assert.Must(os.ReadFile(path))(t)
	assert.Equal(t, indented.String(), string(want), "%s (-want +got; -update rewrites it)", name)
}

var riyadh = &store.Store{
	ID: 1, Currency: "SAR", Locale: locale.En, TaxRate: 150_000, PricesIncludeTax: true,
	PaymentMethods: []store.PaymentMethod{
		{ID: "mada", Name: locale.Text{locale.En: "mada", locale.Ar: "مدى"}, Icon: "https://cdn.example.com/mada.svg", Enabled: true},
		{ID: "card", Name: locale.Text{locale.En: "Credit card"}},
	},
}

// fullCart returns a cart with every kind of line: plain, with answers and a plan, above
// the stock, and of a product that no longer exists.
func fullCart() cart.Cart {
	return cart.Cart{
		ID: "CARTID", Version: 7, Mark: "MARK", Coupon: "TEN", Metadata: cart.Metadata{"channel": "kiosk"},
		ExpiresAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Lines: []cart.Line{
			{ID: "1", Quantity: 2, AddedPrice: 4000, Metadata: cart.Metadata{"to": "“Sara”", "gift": "yes"}},
			{ID: "5.p52.fAAAAAAAAAAAAAAAA", Quantity: 1, AddedPrice: 22025, Notice: "as a “gift” </script>", Fields: []cart.FieldValue{
				{Name: "email", Value: "a@example.com"}, {Name: "former", Value: "kept"}, {Name: "region", Value: "us"},
			}},
			{ID: "2", Quantity: 4, AddedPrice: 1000},
			{ID: "404", Quantity: 1, AddedPrice: 1},
		},
	}
}

func fullCatalog() map[int64]*cart.Product {
	plain, few, asking := carttest.Sold(1, 4950), carttest.Sold(2, 1000), carttest.Account()
	plain.Name, plain.Slug, plain.Type = locale.Named("Game credit"), "game-credit", "digital"
	plain.OriginalPrice, plain.MaxQuantity = 5500, new(int64(10))
	plain.Image = &cart.Image{URL: "https://cdn.example.com/1.webp", Alt: "A pile of coins"}
	few.Stock, few.Image = new(int64(3)), &cart.Image{URL: "/pictures/2.webp"}
	asking.Slug, asking.Type, asking.Image = "account", "subscription", &cart.Image{URL: "//cdn.example.com/5.webp"}
	translate(&plain.Name, "رصيد ألعاب")
	translate(&few.Name, "تذكرة")
	translate(&asking.Fields[1].Options[1].Name, "الولايات المتحدة")
	asking.Plans[1].Label = locale.Named("1 year, best price")
	translate(&asking.Plans[1].Label, "سنة بأفضل سعر")
	return map[int64]*cart.Product{1: plain, 2: few, 5: asking}
}

func translate(n *locale.Name, arabic string) {
	n.Others = map[locale.Locale]string{locale.Ar: arabic}
}

func fullPriced() *cart.Priced { return redeemed(fullCart(), fullCatalog()) }

func redeemed(c cart.Cart, products map[int64]*cart.Product) *cart.Priced {
	p := cart.Price(c, riyadh, products, carttest.Limits)
	p.Redeem(&cart.Coupon{Code: "TEN", Kind: cart.Percent, Rate: 100_000}, cart.Uses{}, riyadh, time.Now())
	return &p
}

type written struct{ *wire.Writer }

func (w written) etag(p *cart.Priced) string { return strings.Trim(w.ETag(p.Cart.Tag()), `"`) }

func in(l locale.Locale, write func(view)) written {
	w := wire.NewWriter(nil, l, money.NewFormatter())
	write(newView(w, riyadh, "https://shop.example.com", "/api"))
	return written{w}
}

func cartTag(l locale.Locale, p *cart.Priced) string {
	return in(l, func(w view) { w.cart(p, "", nil) }).etag(p)
}

var fullReport = &cart.MergeReport{ID: "A7", At: time.Unix(1763632800, 0), Lines: 3, Adjusted: []cart.Adjustment{{Line: "2", Requested: 6, Kept: 3, Code: problem.InsufficientStock}}}

// twoRates has a coupon that does not count now, and tax at two rates.
var twoRates = &cart.Priced{
	Subtotal: 3000, Total: 3000, Tax: 261,
	TaxLines: []cart.TaxLine{{Rate: 150_000, Base: 1739, Amount: 261}, {Rate: 0, Base: 1000}},
	Coupon: &cart.AppliedCoupon{
		Code: "FIVE", Kind: cart.Fixed, Amount: 500,
		Issue: &cart.CouponIssue{Reason: cart.CouponMinimum, Sentence: locale.Text{locale.En: "Coupon FIVE needs more."}.With()},
	},
}

func TestView_Golden(t *testing.T) {
	t.Parallel()
	token := auth.CartToken(strings.Repeat("t", 22))
	empty := cart.Price(cart.Cart{}, riyadh, nil, carttest.Limits)
	full, none := cart.Validate(fullPriced()), cart.Validate(&empty)
	tooMany, used := cart.Refusal{Code: problem.CartFull}.Problem("", nil, carttest.Limits), problem.New(problem.CouponInvalid, "coupon", textText, "x")
	outcomes := service.Outcomes{Each: []service.Outcome{{Item: "1"}, {}, {Refusal: tooMany}, {Refusal: used.WithData(cart.CouponUsedUp)}}}
	for name, got := range map[string]written{
		"cart.en.json":          in("en", func(w view) { w.cart(fullPriced(), token, nil) }),
		"cart.ar.json":          in("ar", func(w view) { w.cart(fullPriced(), "", nil) }),
		"cart.empty.json":       in("en", func(w view) { w.cart(&empty, token, nil) }),
		"cart.merged.json":      in("en", func(w view) { w.cart(&empty, "", fullReport) }),
		"summary.json":          in("ar", func(w view) { w.summary(&empty, token, nil) }),
		"summary.rates.json":    in("en", func(w view) { w.summary(twoRates, "", nil) }),
		"coupon.refused.json":   in("en", func(w view) { w.refusal(nil, cart.CouponUsedUp, fullReport) }),
		"list.refused.json":     in("en", func(w view) { w.refusal(new(int64(2)), "", nil) }),
		"list.json":             in("ar", func(w view) { w.changedCart(&empty, token, nil, &outcomes, nil) }),
		"count.json":            in("en", func(w view) { w.count(8, 4, token, fullReport) }),
		"validation.json":       in("en", func(w view) { w.validation(&full, fullReport) }),
		"validation.ar.json":    in("ar", func(w view) { w.validation(&full, nil) }),
		"validation.empty.json": in("ar", func(w view) { w.validation(&none, nil) }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, got.Bytes())
		})
	}
}

// A view reads names without copying them, so no name costs an allocation, with translations
// or without.
func TestView_NamesCostNoAllocations(t *testing.T) {
	translated, named := fullPriced(), fullPriced()
	for i := range named.Lines {
		translated.Lines[i].Issue, named.Lines[i].Issue = nil, nil // their sentences allocate
		if p := named.Lines[i].Product; p != nil {
			p.Name.Others = nil
			for j := range p.Fields {
				for k := range p.Fields[j].Options {
					p.Fields[j].Options[k].Name.Others = nil
				}
			}
		}
	}
	buffer, prices := make([]byte, 0, 64<<10), money.NewFormatter()
	count := func(p *cart.Priced, l locale.Locale) float64 {
		return testing.AllocsPerRun(100, func() {
			newView(wire.NewWriter(buffer, l, prices), riyadh, "https://shop.example.com", "/api").members(p, "", nil)
		})
	}
	for _, l := range locale.All() {
		with, without := count(translated, l), count(named, l)
		assert.That(t, with == without, "in %s: %v allocations with translations, %v without", l, with, without)
	}
}

// The published client strips members of these names from every answer.
func TestView_HasNoMemberNameThatTheClientStrips(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	assert.Require(t, err == nil && len(files) >= 8, "%v, %v", files, err)
	member := regexp.MustCompile(`(?m)^ *"(.*?)": `)
	for _, file := range files {
		data := assert.Must(os.ReadFile(file))(t)
		for _, name := range member.FindAllStringSubmatch(string(data), -1) {
			for _, stripped := range []string{"key", "secret", "password", "token"} {
				assert.That(t, name[1] == "cart_token" || !strings.Contains(strings.ToLower(name[1]), stripped),
					"%s has the member %s", file, name[1])
			}
		}
	}
}

func TestETag_IsTheSameForTheSameCart(t *testing.T) {
	t.Parallel()
	later := fullPriced()
	later.Cart.ExpiresAt = later.Cart.ExpiresAt.Add(time.Hour)
	tag := cartTag("en", fullPriced())
	assert.Equal(t, cartTag("en", later), tag, "got %s, and an hour later", tag)
	elsewhere := in("en", func(w view) {
		newView(w.Writer, riyadh, "http://localhost:8080", "/api").cart(fullPriced(), "", nil)
	})
	assert.Equal(t, elsewhere.etag(fullPriced()), tag, "got %s, and on another host", tag)
	assert.That(t, strings.HasPrefix(tag, "CARTID.7.MARK-") && !strings.ContainsAny(tag, `" ,`), "tag %s", tag)
	empty := cart.Price(cart.Cart{}, riyadh, nil, carttest.Limits)
	tag = cartTag("en", &empty)
	assert.That(t, strings.HasPrefix(tag, "0.0.0-"), "empty cart: tag %s", tag)
}

func TestETag_ChangesWithEverythingShown(t *testing.T) {
	t.Parallel()
	tag := cartTag("en", fullPriced())
	with := func(edit func(map[int64]*cart.Product)) string {
		products := fullCatalog()
		edit(products)
		return cartTag("en", redeemed(fullCart(), products))
	}
	same := with(func(map[int64]*cart.Product) {})
	assert.Require(t, same == tag, "it changes for the same cart: %s and %s", tag, same)
	edited := func(edit func(*cart.Cart)) string {
		c := fullCart()
		edit(&c)
		return cartTag("en", redeemed(c, fullCatalog()))
	}
	lapsed := cart.Price(fullCart(), riyadh, fullCatalog(), carttest.Limits)
	lapsed.Redeem(nil, cart.Uses{}, riyadh, time.Now())
	for name, other := range map[string]string{
		"price":    with(func(p map[int64]*cart.Product) { p[1].Price++ }),
		"was":      with(func(p map[int64]*cart.Product) { p[1].OriginalPrice++ }),
		"name":     with(func(p map[int64]*cart.Product) { p[1].Name.Own += "!" }),
		"stock":    with(func(p map[int64]*cart.Product) { *p[2].Stock-- }),
		"status":   with(func(p map[int64]*cart.Product) { p[1].Active = false }),
		"maximum":  with(func(p map[int64]*cart.Product) { *p[1].MaxQuantity++ }),
		"picture":  with(func(p map[int64]*cart.Product) { p[1].Image = nil }),
		"path":     with(func(p map[int64]*cart.Product) { p[2].Image.URL += "!" }),
		"alt":      with(func(p map[int64]*cart.Product) { p[2].Image.Alt += "!" }),
		"label":    with(func(p map[int64]*cart.Product) { p[5].Plans[1].Label.Own += "!" }),
		"option":   with(func(p map[int64]*cart.Product) { p[5].Fields[1].Options[1].Name.Own += "!" }),
		"plan":     with(func(p map[int64]*cart.Product) { p[5].Plans[1].Duration = "monthly" }),
		"gone":     with(func(p map[int64]*cart.Product) { delete(p, 5) }),
		"coupon":   cartTag("en", &lapsed),
		"language": cartTag("ar", fullPriced()),
		"version":  edited(func(c *cart.Cart) { c.Version++ }),
		"mark":     edited(func(c *cart.Cart) { c.Mark = "OTHER" }),
		"merge":    in("en", func(w view) { w.cart(fullPriced(), "", fullReport) }).etag(fullPriced()),
		"cart":     edited(func(c *cart.Cart) { c.ID = "OTHER" }),
		"notice":   edited(func(c *cart.Cart) { c.Lines[0].Notice = "n" }),
		"metadata": edited(func(c *cart.Cart) { c.Metadata = nil }),
		"a line's": edited(func(c *cart.Cart) { c.Lines[0].Metadata = cart.Metadata{"to": "Omar", "gift": "yes"} }),
		"summary":  in("en", func(w view) { w.summary(fullPriced(), "", nil) }).etag(fullPriced()),
	} {
		assert.That(t, other != tag, "%s: the same tag", name)
	}
}
