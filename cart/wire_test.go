package cart

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/auth"
	"commerce/auth/locale"
	"commerce/auth/store"
	"commerce/cart/money"
)

var update = flag.Bool("update", false, "write testdata anew instead of comparing with it")

// golden compares JSON, set out for reading, with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var set bytes.Buffer
	if err := json.Indent(&set, got, "", "  "); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	set.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, set.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), set.String()); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew)\n%s", name, diff)
	}
}

var riyadh = &store.Store{
	ID: 1, Currency: "SAR", Locale: locale.En, TaxRate: 150_000, PricesIncludeTax: true,
	PaymentMethods: []store.PaymentMethod{
		{ID: "mada", Name: locale.Text{locale.En: "mada", locale.Ar: "مدى"}, Icon: "https://cdn.example.com/mada.svg", Enabled: true},
		{ID: "card", Name: locale.Text{locale.En: "Credit card"}},
	},
}

// fullCart has a line of every kind: plain, with answers and a plan, cut by stock,
// gone.
func fullCart() Cart {
	return Cart{
		ID: "CARTID", Version: 7, Coupon: "TEN",
		ExpiresAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Lines: []Line{
			{ID: "1", Quantity: 2, AddedPrice: 4000},
			{ID: "5.p52.fAAAAAAAAAAAAAAAA", Quantity: 1, AddedPrice: 22025, Notice: "as a “gift” </script>", Fields: []FieldValue{
				{"email", "a@example.com"}, {"former", "kept"}, {"region", "us"},
			}},
			{ID: "2", Quantity: 4, AddedPrice: 1000},
			{ID: "404", Quantity: 1, AddedPrice: 1},
		},
	}
}

func fullCatalogue() map[int64]*Product {
	plain, few, asking := sold(1, 4950), sold(2, 1000), account()
	plain.Name, plain.Slug, plain.Type = "Game credit", "game-credit", "digital"
	plain.OriginalPrice, plain.MaxQuantity = 5500, ptr(int64(10))
	plain.Image = &Image{URL: "https://cdn.example.com/1.webp", Alt: "A pile of coins"}
	few.Stock = ptr(int64(3))
	asking.Slug, asking.Type = "account", "subscription"
	return map[int64]*Product{1: plain, 2: few, 5: asking}
}

func fullPriced() *Priced {
	p := price(fullCart(), riyadh, fullCatalogue(), testLimits)
	p.redeem(&Coupon{Code: "TEN", Kind: Percent, Rate: 100_000}, riyadh, time.Now())
	return &p
}

func inLanguage(l locale.Locale) *wire { return newWire(riyadh, l, money.NewFormatter()) }

var fullReport = &MergeReport{Lines: 3, Adjusted: []Adjustment{{Line: "2", Requested: 6, Kept: 3, Code: CodeInsufficientStock}}}

func TestWire_Golden(t *testing.T) {
	t.Parallel()
	token := auth.CartToken(strings.Repeat("t", 22))
	empty := price(Cart{}, riyadh, nil, testLimits)
	for name, write := range map[string]func() *wire{
		"cart.en.json": func() *wire { w := inLanguage("en"); w.cart(fullPriced(), token, nil, nil); return w },
		"cart.ar.json": func() *wire { w := inLanguage("ar"); w.cart(fullPriced(), "", nil, nil); return w },
		"cart.empty.json": func() *wire {
			w := inLanguage("en")
			w.cart(&empty, token, nil, nil)
			return w
		},
		"cart.merged.json": func() *wire {
			w := inLanguage("en")
			w.cart(&empty, "", fullReport, nil)
			return w
		},
		"summary.json": func() *wire {
			w, p := inLanguage("ar"), empty
			w.cart(&p, token, nil, func() { w.summary(&p) })
			return w
		},
		"count.json": func() *wire { w := inLanguage("en"); w.count(8, 4, token, fullReport); return w },
		"validation.json": func() *wire {
			w, v := inLanguage("en"), validate(fullPriced())
			w.validation(&v, fullReport)
			return w
		},
		"validation.empty.json": func() *wire {
			w, v := inLanguage("ar"), validate(&empty)
			w.validation(&v, nil)
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, name, write().Bytes())
		})
	}
}

// The published client strips members of these names from every answer.
func TestWire_HasNoMemberThatTheClientStrips(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 8 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var answer any
		if err := json.Unmarshal(data, &answer); err != nil {
			t.Fatal(err)
		}
		walkMembers(answer, func(name string) {
			for _, stripped := range []string{"key", "secret", "password", "token"} {
				if name != "cart_token" && strings.Contains(strings.ToLower(name), stripped) {
					t.Errorf("%s has the member %s", file, name)
				}
			}
		})
	}
}

func walkMembers(v any, visit func(name string)) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			visit(name)
			walkMembers(value, visit)
		}
	case []any:
		for _, value := range v {
			walkMembers(value, visit)
		}
	}
}

func TestETag_IsTheSameForTheSameCart(t *testing.T) {
	t.Parallel()
	first, other := inLanguage("en"), inLanguage("en")
	later := fullPriced()
	later.Cart.ExpiresAt = later.Cart.ExpiresAt.Add(time.Hour)
	tag := first.cart(fullPriced(), "", nil, nil)
	if again := other.cart(later, "", nil, nil); again != tag {
		t.Errorf("%s, in another instance and later %s", tag, again)
	}
	if merged := inLanguage("en").cart(fullPriced(), "", fullReport, nil); merged == tag || !strings.HasPrefix(merged, "CARTID.7-") {
		t.Errorf("%s, with the report of a merge %s", tag, merged)
	}
	if !strings.HasPrefix(tag, "CARTID.7-") || strings.ContainsAny(tag, `" ,`) {
		t.Errorf("tag %s", tag)
	}
	empty := price(Cart{}, riyadh, nil, testLimits)
	if tag := inLanguage("en").cart(&empty, "", nil, nil); !strings.HasPrefix(tag, "0.0-") {
		t.Errorf("of a cart never used: %s", tag)
	}
}

func TestETag_ChangesWithAllThatIsShown(t *testing.T) {
	t.Parallel()
	tag := inLanguage("en").cart(fullPriced(), "", nil, nil)
	with := func(edit func(map[int64]*Product)) string {
		products := fullCatalogue()
		edit(products)
		p := price(fullCart(), riyadh, products, testLimits)
		p.redeem(&Coupon{Code: "TEN", Kind: Percent, Rate: 100_000}, riyadh, time.Now())
		return inLanguage("en").cart(&p, "", nil, nil)
	}
	if same := with(func(map[int64]*Product) {}); same != tag {
		t.Fatalf("it changes with nothing: %s and %s", tag, same)
	}
	edited := func(edit func(*Cart)) string {
		c := fullCart()
		edit(&c)
		p := price(c, riyadh, fullCatalogue(), testLimits)
		p.redeem(&Coupon{Code: "TEN", Kind: Percent, Rate: 100_000}, riyadh, time.Now())
		return inLanguage("en").cart(&p, "", nil, nil)
	}
	lapsed := price(fullCart(), riyadh, fullCatalogue(), testLimits)
	lapsed.redeem(nil, riyadh, time.Now())
	for name, other := range map[string]string{
		"price":    with(func(p map[int64]*Product) { p[1].Price++ }),
		"was":      with(func(p map[int64]*Product) { p[1].OriginalPrice++ }),
		"name":     with(func(p map[int64]*Product) { p[1].Name += "!" }),
		"stock":    with(func(p map[int64]*Product) { *p[2].Stock-- }),
		"status":   with(func(p map[int64]*Product) { p[1].Active = false }),
		"maximum":  with(func(p map[int64]*Product) { *p[1].MaxQuantity++ }),
		"picture":  with(func(p map[int64]*Product) { p[1].Image = nil }),
		"option":   with(func(p map[int64]*Product) { p[5].Fields[1].Options[1].Name += "!" }),
		"plan":     with(func(p map[int64]*Product) { p[5].Plans[1].Duration = "monthly" }),
		"gone":     with(func(p map[int64]*Product) { delete(p, 5) }),
		"coupon":   inLanguage("en").cart(&lapsed, "", nil, nil),
		"language": inLanguage("ar").cart(fullPriced(), "", nil, nil),
		"version":  edited(func(c *Cart) { c.Version++ }),
		"cart":     edited(func(c *Cart) { c.ID = "OTHER" }),
		"notice":   edited(func(c *Cart) { c.Lines[0].Notice = "n" }),
		"summary": func() string {
			w, p := inLanguage("en"), fullPriced()
			return w.cart(p, "", nil, func() { w.summary(p) })
		}(),
	} {
		if other == tag {
			t.Errorf("%s: the same tag", name)
		}
	}
}
