package carthttp

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
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
	"commerce/cart/price"
	"commerce/cart/service"
	"commerce/cart/wire"
	"commerce/deploy/assert"
)

var update = flag.Bool("update", false, "rewrite testdata instead of comparing with it")

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
		ID: "CARTID", Version: 7, Mark: "MARK", Coupons: []string{"TEN"}, Metadata: cart.Metadata{"channel": "kiosk"},
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

func fullPriced() *price.Priced { return redeemed(fullCart(), fullCatalog()) }

func redeemed(c cart.Cart, products map[int64]*cart.Product) *price.Priced {
	p := price.Of(c, riyadh, products, carttest.Limits)
	p.Redeem([]price.Offered{{Code: "TEN", Coupon: &price.Coupon{Code: "TEN", Kind: price.Percent, Rate: 100_000}}}, nil, riyadh, time.Now())
	return &p
}

type written struct{ *wire.Writer }

func (w written) etag(p *price.Priced) string { return strings.Trim(w.ETag(p.Cart.Tag()), `"`) }

func in(l locale.Locale, write func(view)) written {
	w := wire.NewWriter(nil, l, money.NewFormatter())
	write(newView(w, riyadh, "https://shop.example.com", "/api", nil))
	return written{w}
}

func cartTag(l locale.Locale, p *price.Priced) string {
	return in(l, func(w view) { w.cart(p, "", nil) }).etag(p)
}

var fullReport = &cart.MergeReport{ID: "A7", At: time.Unix(1763632800, 0), Lines: 3, Adjusted: []cart.Adjustment{{Line: "2", Requested: 6, Kept: 3, Code: problem.InsufficientStock}}}

// twoRates has a coupon that does not count now, and tax at two rates.
var twoRates = &price.Priced{
	Subtotal: 3000, Total: 3000, Tax: 261,
	TaxLines: []price.TaxLine{{Rate: 150_000, Base: 1739, Amount: 261}, {Rate: 0, Base: 1000}},
	Coupons: []price.AppliedCoupon{{
		Code: "FIVE", Kind: price.Fixed, Amount: 500,
		Issue: &price.CouponIssue{Reason: price.CouponMinimum, Sentence: locale.Text{locale.En: "Coupon FIVE needs more."}.With()},
	}},
}

func TestView_Golden(t *testing.T) {
	t.Parallel()
	token := auth.CartToken(strings.Repeat("t", 22))
	empty := price.Of(cart.Cart{}, riyadh, nil, carttest.Limits)
	full, none := price.Validate(fullPriced()), price.Validate(&empty)
	tooMany, used := cart.Refusal{Code: problem.CartFull}.Problem("", nil, carttest.Limits), problem.New(problem.CouponInvalid, "coupon", textText, "x")
	outcomes := service.Outcomes{Each: []service.Outcome{{Item: "1"}, {}, {Refusal: tooMany}, {Refusal: used.WithData(price.CouponUsedUp)}}}
	for name, got := range map[string]written{
		"cart.en.json":          in("en", func(w view) { w.cart(fullPriced(), token, nil) }),
		"cart.ar.json":          in("ar", func(w view) { w.cart(fullPriced(), "", nil) }),
		"cart.empty.json":       in("en", func(w view) { w.cart(&empty, token, nil) }),
		"cart.merged.json":      in("en", func(w view) { w.cart(&empty, "", fullReport) }),
		"summary.json":          in("ar", func(w view) { w.summary(&empty, token, nil) }),
		"summary.rates.json":    in("en", func(w view) { w.summary(twoRates, "", nil) }),
		"coupon.refused.json":   in("en", func(w view) { w.refusal(nil, price.CouponUsedUp, fullReport) }),
		"list.refused.json":     in("en", func(w view) { w.refusal(new(int64(2)), "", nil) }),
		"list.json":             in("ar", func(w view) { w.changedCart(&empty, token, &service.Changed{Ops: &outcomes}, nil, nil) }),
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

// A view reads names, translated or not, without copying them, so that none is allocated.
func TestView_NamesCostNoAllocations(t *testing.T) {
	translated, named := fullPriced(), fullPriced()
	for i := range named.Lines {
		for _, l := range []*price.Line{&translated.Lines[i], &named.Lines[i]} {
			l.Issue, l.AddedPrice = nil, l.Unit.Total() // sentences of issues and warnings allocate
			if l.Product != nil {
				l.Product.Stock = nil
			}
		}
		if p := named.Lines[i].Product; p != nil {
			p.Name.Others = nil
			for j := range p.Fields {
				for k := range p.Fields[j].Options {
					p.Fields[j].Options[k].Name.Others = nil
				}
			}
		}
	}
	buffer, prices, parts := make([]byte, 0, 64<<10), money.NewFormatter(), newPartsCache()
	count := func(p *price.Priced, l locale.Locale) float64 {
		return testing.AllocsPerRun(100, func() {
			newView(wire.NewWriter(buffer, l, prices), riyadh, "https://shop.example.com", "/api", parts).members(p, "", nil)
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
		newView(w.Writer, riyadh, "http://localhost:8080", "/api", nil).cart(fullPriced(), "", nil)
	})
	assert.Equal(t, elsewhere.etag(fullPriced()), tag, "got %s, and on another host", tag)
	assert.That(t, strings.HasPrefix(tag, "CARTID.7.MARK-") && !strings.ContainsAny(tag, `" ,`), "tag %s", tag)
	empty := price.Of(cart.Cart{}, riyadh, nil, carttest.Limits)
	tag = cartTag("en", &empty)
	assert.That(t, strings.HasPrefix(tag, "0.0.0-"), "empty cart: tag %s", tag)
}

// shown is what the body of a summary depends on.
type shown struct {
	Cart     cart.Cart
	Store    store.Store
	Products map[int64]*cart.Product
	Coupon   *price.Coupon
	Uses     price.Uses
	Limits   cart.Limits
	Report   cart.MergeReport
}

func everythingShown() *shown {
	rate, uses := int64(50_000), int64(9)
	s := &shown{
		Cart: fullCart(), Store: *riyadh, Products: fullCatalog(), Limits: carttest.Limits, Report: *fullReport,
		Coupon: &price.Coupon{Code: "TEN", Kind: price.Percent, Rate: 100_000, Products: []int64{1, 5}, MaxUses: &uses, MaxUsesCustomer: &uses},
	}
	s.Products[1].TaxRate, s.Products[2].MaxPerCart = &rate, new(int64(9))
	s.Report.Adjusted = slices.Clone(s.Report.Adjusted)
	s.Store.PaymentMethods = slices.Clone(s.Store.PaymentMethods)
	for i := range s.Store.PaymentMethods {
		s.Store.PaymentMethods[i].Name = maps.Clone(s.Store.PaymentMethods[i].Name)
	}
	s.Cart.Lines[0].Fields = []cart.FieldValue{{Name: "former", Value: "kept"}}
	return s
}

func (s *shown) summary(l locale.Locale, prices *money.Formatter, parts *partsCache) (body, tag string) {
	priced := price.Of(s.Cart, &s.Store, s.Products, s.Limits)
	priced.Redeem([]price.Offered{{Code: "TEN", Coupon: s.Coupon, Uses: s.Uses}}, nil, &s.Store, time.Unix(1763632800, 0))
	w := wire.NewWriter(nil, l, prices)
	newView(w, &s.Store, "https://shop.example.com", "/api", parts).summary(&priced, "", &s.Report)
	return string(w.Bytes()), w.ETag(priced.Cart.Tag())
}

// For every value that a body depends on, found by reflection: nothing that was written before it
// changed is used again, and the tag changes exactly if the body does.
func TestETag_ChangesWithEverythingShown(t *testing.T) {
	t.Parallel()
	prices, parts := money.NewFormatter(), newPartsCache()
	leftOut := regexp.MustCompile(`"(full_link|expires_at)":("[^"]*"|null)`)
	seen := 0
	for _, l := range locale.All() {
		before := everythingShown()
		base, baseTag := before.summary(l, prices, parts)
		for n := 0; ; n++ {
			changed, path, left := everythingShown(), "", n
			if !mutate(reflect.ValueOf(changed).Elem(), "", func(at string) bool { path = at; left--; return left < 0 }) {
				break
			}
			if !strings.HasPrefix(path, ".Products") { // a changed product has another address
				changed.Products = before.Products
			}
			body, tag := changed.summary(l, prices, parts)
			want, wantTag := changed.summary(l, prices, nil)
			assert.That(t, body == want && tag == wantTag, "%s, %s: the tag %s of\n%s\nwant %s of\n%s", path, l, tag, body, wantTag, want)
			same := leftOut.ReplaceAllString(body, "") == leftOut.ReplaceAllString(base, "") && !slices.Contains([]string{".Cart.ID", ".Cart.Mark"}, path)
			assert.That(t, (tag == baseTag) == same, "%s, %s: tags %s and %s of\n%s\n%s", path, l, baseTag, tag, base, body)
			if !same {
				seen++
			}
		}
	}
	assert.That(t, seen > 200, "%d changes are shown", seen)
	tag := cartTag("en", fullPriced())
	for name, other := range map[string]string{
		"language": cartTag("ar", fullPriced()),
		"merge":    in("en", func(w view) { w.cart(fullPriced(), "", fullReport) }).etag(fullPriced()),
		"summary":  in("en", func(w view) { w.summary(fullPriced(), "", nil) }).etag(fullPriced()),
	} {
		assert.That(t, other != tag, "%s: the same tag", name)
	}
}

// A remembered tag is found only for a cart that would have it. The version names the contents of a cart.
func TestETag_IsRememberedWhileNothingShownChanges(t *testing.T) {
	t.Parallel()
	plain := func() *shown {
		s := everythingShown()
		s.Cart.Coupons = nil
		return s
	}
	before := plain()
	prices, tags, found, missed := money.NewFormatter(), newTagCache(), 0, 0
	remember := func(what string, s *shown, of *store.Store, l locale.Locale, token auth.CartToken) {
		priced := price.Of(s.Cart, of, s.Products, s.Limits)
		w := wire.NewWriter(nil, l, prices)
		newView(w, of, "https://shop.example.com", "/api", nil).summary(&priced, token, nil)
		key, lasting := tagKeyOf(&s.Cart, token, of, l, nil, false)
		assert.That(t, lasting == (s.Cart.Coupons == nil), "%s: lasting %v", what, lasting)
		want := strings.Trim(w.ETag(s.Cart.Tag()), `"`)
		if got, ok := tagOf(tags, key, s.Products); ok {
			assert.Equal(t, got, want, "%s, %s: the remembered tag", what, l)
			found++
		} else {
			missed++
		}
		if what == "" {
			tags.Put(key, tagged{s.Products, want})
		}
	}
	for _, l := range locale.All() {
		remember("", before, &before.Store, l, "")
	}
	for _, l := range locale.All() {
		remember("nothing", before, &before.Store, l, "")
		remember("token", before, &before.Store, l, "another")
		for n := 0; ; n++ {
			changed, path, left := plain(), "", n
			if !mutate(reflect.ValueOf(changed).Elem(), "", func(at string) bool { path = at; left--; return left < 0 }) {
				break
			}
			of := &changed.Store
			if !strings.HasPrefix(path, ".Store") {
				of = &before.Store
			}
			if !strings.HasPrefix(path, ".Products") {
				changed.Products = before.Products
			}
			if strings.HasPrefix(path, ".Cart.") && path != ".Cart.ID" && path != ".Cart.Mark" {
				changed.Cart.Version++
			}
			if !strings.HasPrefix(path, ".Limits") { // they are settings
				remember(path, changed, of, l, "")
			}
		}
	}
	assert.That(t, found > len(locale.All()) && missed > 200, "%d tags were remembered, %d were not", found, missed)
	_, lasting := tagKeyOf(&before.Cart, "", &before.Store, locale.En, fullReport, false)
	assert.That(t, !lasting, "a tag with a report lasts")
}

// mutate makes the first change at or below v that chosen accepts. It returns false if there is none.
func mutate(v reflect.Value, path string, chosen func(path string) bool) bool {
	change := reflect.Zero(v.Type())
	switch v.Kind() {
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			change = reflect.ValueOf(at.Add(time.Hour))
			break
		}
		for i := range v.NumField() {
			if mutate(v.Field(i), path+"."+v.Type().Field(i).Name, chosen) {
				return true
			}
		}
		return false
	case reflect.Pointer:
		if v.IsNil() {
			change = reflect.New(v.Type().Elem())
		} else if mutate(v.Elem(), path, chosen) {
			return true
		}
	case reflect.Slice:
		for i := range v.Len() {
			if mutate(v.Index(i), fmt.Sprintf("%s[%d]", path, i), chosen) {
				return true
			}
		}
		change = reflect.Append(v, reflect.New(v.Type().Elem()).Elem())
	case reflect.Map:
		keys := slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, k := range keys {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(k))
			done := mutate(value, fmt.Sprintf("%s[%v]", path, k), chosen)
			v.SetMapIndex(k, value)
			if done {
				return true
			}
		}
	case reflect.String:
		change = reflect.ValueOf(v.String() + "!").Convert(v.Type())
	case reflect.Bool:
		change = reflect.ValueOf(!v.Bool())
	default:
		change = reflect.ValueOf(v.Int() + 1).Convert(v.Type())
	}
	if !chosen(path) {
		return false
	}
	v.Set(change)
	return true
}
