package price

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"commerce/auth/store"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/money"
	"commerce/deploy/assert"
)

var recountTime = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// recountCases must all occur among the carts that are recounted. Otherwise, the test shows less than it claims.
var recountCases = []string{
	"combining applied", "single applied", "single beats combining", "combining beats single", "nothing applied", "no effect",
	"tie: code", "tie: combining", "tie: lower key", "percent before a lower key", "nothing left", "equal remainders", "half a unit",
	"gone", "not_started", "expired", "used_up", "not_applicable", "minimum", "not_combined", "automatic key entered",
	"offer of an amount", "offer of a quantity", "offers equally near", "more than 3 offers", "26th automatic", "26th not offered",
	"abroad", "country without rates", "own country", "several rates", "gift card abroad", "class without a rate", "total of 0", "empty cart",
}

// The recount follows docs/cart.md in exact fractions. It shares no code with Redeem.
func TestRedeem_AgreesWithARecountInFractions(t *testing.T) {
	t.Parallel()
	carts, seen := uint64(20_000), map[string]int{}
	if testing.Short() {
		carts = 2000
	}
	for seed := uint64(0); seed < carts && !t.Failed(); seed++ {
		d := draw(rand.New(rand.NewPCG(seed, 0)))
		got := Of(d.cart, d.store, d.products, carttest.Limits)
		got.Redeem(d.codes, d.automatic, d.store, recountTime)
		assert.Equal(t, receiptOf(&got), d.recount(), "seed %d", seed)
		given, counted := sumsOf(&got)
		assert.Equal(t, given, counted, "seed %d: sums", seed)
		assert.That(t, got.Total >= 0, "seed %d: total %d", seed, got.Total)
		for name := range d.seen {
			seen[name]++
		}
	}
	for _, name := range recountCases {
		t.Logf("%6d carts: %s", seen[name], name)
		assert.That(t, seen[name] > 0, "no cart with %q", name)
	}
}

// receiptOf writes what a shopper sees: discounts with each line's part, issues of codes, offers, taxes with their base, and the total.
func receiptOf(p *Priced) string {
	var all []string
	for _, d := range p.Discounts {
		all = append(all, fmt.Sprintf("%s %d %d", d.Code, d.Amount, d.Lines))
	}
	for _, c := range p.Coupons {
		if c.Issue != nil {
			all = append(all, fmt.Sprintf("%s %s", c.Code, c.Issue.Reason))
		}
	}
	for _, o := range p.Offers {
		all = append(all, fmt.Sprintf(offerText, o.Code, o.Amount, o.Quantity))
	}
	for _, l := range p.TaxLines {
		all = append(all, fmt.Sprintf(taxText, float64(l.Rate)/10_000, l.Base, l.Amount))
	}
	return strings.Join(append(all, fmt.Sprintf("total %d", p.Total)), "; ")
}

const (
	offerText = "%s lacks %d and %d pieces"
	taxText   = "%g %% of %d is %d"
)

// sumsOf returns all sums that a priced cart has, and the sums of their parts.
func sumsOf(p *Priced) (given, counted map[string]money.Amount) {
	given, counted = map[string]money.Amount{"discount": p.Discount, "tax": p.Tax, "total": p.Total}, map[string]money.Amount{}
	counted["discount"], counted["tax"], counted["total"] = 0, 0, 0
	for i, l := range p.Lines {
		line := fmt.Sprint("line ", i)
		given[line], counted[line] = l.Discount, 0
		for _, d := range p.Discounts {
			counted[line] += d.Lines[i]
			counted[d.Code] += d.Lines[i]
		}
	}
	for _, d := range p.Discounts {
		given[d.Code] = d.Amount
		counted["discount"] += d.Amount
	}
	for _, c := range p.Coupons {
		counted[c.Code+"'s"] = c.Discount
		if given[c.Code+"'s"] = 0; c.Issue == nil {
			given[c.Code+"'s"] = given[c.Code]
		}
	}
	for _, l := range p.TaxLines {
		counted["tax"] += l.Amount
		counted["total"] += l.Base + l.Amount
	}
	return given, counted
}

// drawn is a cart to redeem and to recount.
type drawn struct {
	*rand.Rand
	store            *store.Store
	cart             cart.Cart
	products         map[int64]*cart.Product
	bought           []int64 // the product of each line
	prices           []int64 // of each line
	sellable         []int64 // pieces of each line that can be bought
	buyable          int64   // sum of the lines that can be bought
	codes, automatic []Offered
	coupons          []Coupon // so far
	seen             map[string]bool
}

func pick[T any](d *drawn, from ...T) T { return from[d.IntN(len(from))] }

func (d *drawn) percent(n int) bool { return d.IntN(100) < n }

func (d *drawn) note(name string, occurred bool) {
	if occurred {
		d.seen[name] = true
	}
}

func draw(r *rand.Rand) *drawn {
	d := &drawn{Rand: r, products: map[int64]*cart.Product{}, seen: map[string]bool{}}
	d.drawStore()
	for _, id := range d.Perm(12)[:d.IntN(10)] {
		d.drawLine(int64(id + 1))
	}
	automatic, limits := d.IntN(6), 40
	if d.percent(15) {
		automatic, limits = 30, pick(d, 4, 8, 40)
	}
	for range automatic {
		d.automatic = append(d.automatic, d.drawCoupon(limits, true))
	}
	slices.SortFunc(d.automatic, func(a, b Offered) int { return cmp.Compare(a.Coupon.Code, b.Coupon.Code) }) // as the catalog returns them
	for range d.IntN(6) {
		o := d.drawCoupon(30, false)
		switch o.Code = strings.ToLower(o.Coupon.Code); {
		case d.percent(5):
			o.Coupon = nil
		case d.percent(5) && automatic > 0:
			o.Coupon = d.automatic[0].Coupon
		}
		d.codes = append(d.codes, o)
	}
	return d
}

var taxClasses = []string{store.StandardTax, "e-book", "course"}

const recountCountries = "AE AT AU BE BG BH CH CY CZ DE DK EE ES FI FR GB GR HR HU IE IT JP KW LT LU LV MT NL NO NZ PL PT RO SA SE"

func (d *drawn) drawStore() {
	rates := store.TaxRates{}
	for _, country := range strings.Fields(recountCountries) {
		rates[country] = map[string]int64{}
		for _, class := range taxClasses {
			if d.percent(70) {
				rates[country][class] = pick(d, 0, 55_000, 70_000, 190_000, 255_000, d.Int64N(300_000))
			}
		}
	}
	d.store = &store.Store{
		Currency: pick(d, "JPY", "SAR", "KWD"), TaxRate: pick[int64](d, 0, 50_000, 150_000, 77_777, cart.MaxTaxRate),
		PricesIncludeTax: d.percent(50), Country: pick(d, "", "SA", "SA", "DE"), TaxRates: rates,
	}
	d.cart.Buyer.Country = pick(d, append(strings.Fields(recountCountries), "", "", "SA", "SA", "US", "ZW", "ZZ")...)
}

// drawLine adds a line of a product, which may be gone.
func (d *drawn) drawLine(id int64) {
	line, price, pieces := cart.Line{ID: cart.NewLineID(id, 0, nil), Quantity: pick(d, 1, 1+d.Int64N(12), 1+d.Int64N(999))}, int64(0), int64(0)
	if d.percent(85) {
		p := carttest.Sold(id, money.Amount(d.Int64N(pick(d, 9, 9999, int64(cart.MaxPrice)))))
		p.Active, p.TaxClass = d.percent(85), pick(d, append(taxClasses, "", "unknown")...)
		if d.percent(30) {
			p.TaxRate = new(pick[int64](d, 0, 0, 50_000, cart.MaxTaxRate))
		}
		if d.percent(25) {
			p.Stock = new(pick(d, 0, line.Quantity-1, line.Quantity))
		}
		price = int64(p.Price) * line.Quantity
		if p.Active && (p.Stock == nil || line.Quantity <= *p.Stock) {
			pieces = line.Quantity
			d.buyable += price
		}
		d.products[id] = p
	}
	d.cart.Lines, d.bought = append(d.cart.Lines, line), append(d.bought, id)
	d.prices, d.sellable = append(d.prices, price), append(d.sellable, pieces)
}

// drawCoupon draws a coupon, which has limits with a probability in percent. Many do the same as an earlier one, which makes ties.
func (d *drawn) drawCoupon(limits int, automatic bool) (o Offered) {
	c := Coupon{
		Kind: pick(d, Percent, Fixed), Rate: pick(d, 1, 33_333, 100_000, 125_000, 142_857, 999_999, 1_000_000, 1+d.Int64N(1_000_000)),
		Amount: money.Amount(1 + d.Int64N(pick[int64](d, 9, 2000, 1<<40))),
	}
	for range pick(d, 0, 0, 0, 1, 2, 4) {
		c.Products = append(c.Products, 1+d.Int64N(16)) // 13 and more are in no cart
	}
	slices.Sort(c.Products)
	if len(d.coupons) > 0 && d.percent(40) {
		other := pick(d, d.coupons...)
		c = Coupon{Kind: other.Kind, Rate: other.Rate, Amount: other.Amount, Products: other.Products}
	}
	for c.Code == "" || slices.ContainsFunc(d.coupons, func(other Coupon) bool { return other.Code == c.Code }) {
		c.Code = pick(d, "A", "B", "Z", "a", "z", "É", "9", "_") + strconv.Itoa(d.IntN(100))
	}
	c.Automatic, c.Combines = automatic, d.percent(50)
	if pieces := d.pieces(&c); d.percent(limits) {
		c.Minimum = money.Amount(pick(d, 0, 0, d.buyable, d.buyable+1, 2*d.buyable, d.buyable+d.Int64N(5000)))
		c.MinQuantity = pick(d, 0, 0, 1+d.Int64N(20), pieces, pieces+1, 2*pieces)
	}
	if d.percent(limits) {
		c.Starts = recountTime.Add(pick(d, -time.Hour, -time.Hour, 0, 1))
		c.Expires = recountTime.Add(pick(d, time.Hour, time.Hour, 1, 0))
		c.MaxUses, c.MaxUsesCustomer = new(int64(3)), new(int64(1))
		o.Uses = Uses{All: pick[int64](d, 0, 0, 2, 3), Customer: pick[int64](d, 0, 0, 0, 1)}
	}
	d.coupons, o.Coupon = append(d.coupons, c), &c
	return o
}

func covers(c *Coupon, product int64) bool {
	return len(c.Products) == 0 || slices.Contains(c.Products, product)
}

// coversAny reports whether a coupon is for a product of a line that still exists.
func (d *drawn) coversAny(c *Coupon) bool {
	return slices.ContainsFunc(d.bought, func(id int64) bool { return d.products[id] != nil && covers(c, id) })
}

func (d *drawn) pieces(c *Coupon) (sum int64) {
	for i, id := range d.bought {
		if covers(c, id) {
			sum += d.sellable[i]
		}
	}
	return sum
}

func (d *drawn) recount() string {
	var live []Offered
	reasons := make([]CouponReason, len(d.codes))
	for i, o := range d.codes {
		if reasons[i] = d.reason(o); reasons[i] == "" {
			live = append(live, o)
		}
	}
	counting, offers := d.recountAutomatic()
	best := d.choose(append(live, counting...))
	var all []string
	left, applied := slices.Clone(d.prices), map[string]bool{}
	for i, parts := range best.parts {
		key, amount := best.set[i].Coupon.Code, int64(0)
		for i, part := range parts {
			amount, left[i] = amount+part, left[i]-part
		}
		if applied[key] = true; amount > 0 {
			all = append(all, fmt.Sprintf("%s %d %d", key, amount, parts))
		}
		d.note("no effect", amount == 0)
	}
	for i, o := range d.codes {
		key := o.Code
		if o.Coupon != nil {
			key = o.Coupon.Code
		}
		if reasons[i] == "" && !applied[key] {
			reasons[i] = CouponNotCombined
		}
		if reasons[i] != "" {
			all = append(all, fmt.Sprintf("%s %s", key, reasons[i]))
		}
		d.note(string(reasons[i]), true)
		d.note("automatic key entered", o.Coupon != nil && o.Coupon.Automatic)
	}
	d.note("empty cart", len(d.bought) == 0)
	return strings.Join(slices.Concat(all, offers, d.taxes(left)), "; ")
}

// reason is the first one of docs/cart.md that holds, "" for none.
func (d *drawn) reason(o Offered) CouponReason {
	c := o.Coupon
	switch {
	case c == nil, c.Automatic && o.Code != "":
		return CouponGone
	case recountTime.Compare(c.Starts) < 0:
		return CouponNotStarted
	case c.Expires != time.Time{} && recountTime.Compare(c.Expires) >= 0:
		return CouponExpired
	case c.MaxUses != nil && *c.MaxUses <= o.Uses.All, c.MaxUsesCustomer != nil && *c.MaxUsesCustomer <= o.Uses.Customer:
		return CouponUsedUp
	case len(c.Products) > 0 && !d.coversAny(c):
		return CouponNotApplicable
	case d.buyable < int64(c.Minimum), d.pieces(c) < c.MinQuantity:
		return CouponMinimum
	}
	return ""
}

// recountAutomatic returns the automatic coupons that count, and the offers. After 25, no other can count, so none is offered.
func (d *drawn) recountAutomatic() (live []Offered, texts []string) {
	type offer struct {
		text, key string
		nearness  *big.Rat
	}
	var offers []offer
	for _, o := range d.automatic {
		reason, c := d.reason(o), o.Coupon
		amount, quantity := int64(c.Minimum)-d.buyable, c.MinQuantity-d.pieces(c)
		full := len(live) == 25
		d.note("26th automatic", full && reason == "")
		d.note("26th not offered", full && reason == CouponMinimum)
		switch {
		case full:
		case reason == "":
			live = append(live, o)
		case reason != CouponMinimum || amount > 0 && quantity > 0 || !d.coversAny(c):
		case amount > 0:
			offers = append(offers, offer{fmt.Sprintf(offerText, c.Code, amount, 0), c.Code, big.NewRat(d.buyable, int64(c.Minimum))})
			d.note("offer of an amount", true)
		default:
			offers = append(offers, offer{fmt.Sprintf(offerText, c.Code, 0, quantity), c.Code, big.NewRat(d.pieces(c), c.MinQuantity)})
			d.note("offer of a quantity", true)
		}
	}
	slices.SortFunc(offers, func(a, b offer) int {
		d.note("offers equally near", a.nearness.Cmp(b.nearness) == 0)
		return cmp.Or(b.nearness.Cmp(a.nearness), cmp.Compare(a.key, b.key))
	})
	d.note("more than 3 offers", len(offers) > 3)
	for _, o := range offers[:min(3, len(offers))] {
		texts = append(texts, o.text)
	}
	return live, texts
}

// candidate is what may be applied: all coupons that combine, or one of the others.
type candidate struct {
	set                  []Offered // in the order in which they are applied
	parts                [][]int64 // of each line, for each coupon
	off, coded, combines int64     // the last two: 1 for true
}

func (d *drawn) choose(live []Offered) candidate {
	var combining []Offered
	all := []candidate{}
	for _, o := range live {
		if o.Coupon.Combines {
			combining = append(combining, o)
		} else {
			all = append(all, d.apply(0, o))
		}
	}
	if len(combining) > 0 {
		all = append(all, d.apply(1, combining...))
	}
	d.note("nothing applied", len(all) == 0)
	if len(all) == 0 {
		return candidate{}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.off, a.off), cmp.Compare(b.coded, a.coded), cmp.Compare(b.combines, a.combines),
			cmp.Compare(a.set[0].Coupon.Code, b.set[0].Coupon.Code))
	})
	best, next := all[0], all[min(1, len(all)-1)]
	d.note("combining applied", len(best.set) > 1)
	d.note("single applied", best.combines == 0)
	d.note("single beats combining", best.off > next.off && next.combines == 1)
	d.note("combining beats single", best.off > next.off && best.combines == 1)
	if len(all) > 1 && best.off == next.off && best.off > 0 {
		d.note("tie: code", best.coded > next.coded)
		d.note("tie: combining", best.coded == next.coded && best.combines > next.combines)
		d.note("tie: lower key", best.coded == next.coded && best.combines == next.combines)
	}
	return best
}

// apply takes percentages off first, then fixed amounts, each in the order of keys, and of what those before it have left.
func (d *drawn) apply(combines int64, set ...Offered) candidate {
	slices.SortFunc(set, func(a, b Offered) int {
		return cmp.Or(strings.Compare(string(b.Coupon.Kind), string(a.Coupon.Kind)), strings.Compare(a.Coupon.Code, b.Coupon.Code))
	})
	c, left := candidate{set: set, combines: combines}, slices.Clone(d.prices)
	for n, o := range set {
		costs, cost, amount := make([]int64, len(left)), int64(0), int64(o.Coupon.Amount)
		for i, id := range d.bought {
			if covers(o.Coupon, id) {
				costs[i] = left[i]
				cost += left[i]
			}
		}
		if o.Coupon.Kind == Percent {
			amount = d.rounded(share(cost, o.Coupon.Rate, 1_000_000))
		}
		amount = min(amount, cost)
		parts := d.divide(amount, costs, cost)
		for i := range left {
			left[i] -= parts[i]
		}
		c.parts, c.off = append(c.parts, parts), c.off+amount
		if o.Code != "" {
			c.coded = 1
		}
		d.note("percent before a lower key", n > 0 && set[n-1].Coupon.Code > o.Coupon.Code)
		d.note("nothing left", n > 0 && cost == 0)
	}
	return c
}

// share is amount × part / whole.
func share(amount, part, whole int64) *big.Rat {
	return new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(amount), big.NewInt(part)), big.NewInt(whole))
}

func floor(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() }

// rounded rounds half a unit away from zero, which is up, because no amount is negative.
func (d *drawn) rounded(r *big.Rat) int64 {
	d.note("half a unit", r.Denom().Cmp(big.NewInt(2)) == 0)
	return floor(r.Add(r, big.NewRat(1, 2)))
}

// divide rounds shares down. The units that are left go to the largest remainders, among equal ones to the first.
func (d *drawn) divide(amount int64, costs []int64, cost int64) []int64 {
	parts, remainders, order := make([]int64, len(costs)), make([]*big.Rat, len(costs)), []int{}
	if amount == 0 {
		return parts
	}
	rest := amount
	for i := range costs {
		exact := share(amount, costs[i], cost)
		parts[i] = floor(exact)
		rest -= parts[i]
		remainders[i], order = exact.Sub(exact, new(big.Rat).SetInt64(parts[i])), append(order, i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(remainders[b].Cmp(remainders[a]), cmp.Compare(a, b)) })
	d.note("equal remainders", rest > 0 && remainders[order[rest-1]].Cmp(remainders[order[rest]]) == 0)
	for _, i := range order[:rest] {
		parts[i]++
	}
	return parts
}

// taxes sums what is left of the lines by rate, and rounds the tax of each rate once.
func (d *drawn) taxes(left []int64) (texts []string) {
	bases, total := map[int64]int64{}, int64(0)
	for i, id := range d.bought {
		if p := d.products[id]; p != nil {
			bases[d.rate(p)] += left[i]
		}
	}
	for _, rate := range slices.Backward(slices.Sorted(maps.Keys(bases))) {
		base, whole := bases[rate], int64(1_000_000)
		if d.store.PricesIncludeTax {
			whole += rate
		}
		tax := d.rounded(share(base, rate, whole))
		if d.store.PricesIncludeTax {
			base -= tax
		}
		texts, total = append(texts, fmt.Sprintf(taxText, float64(rate)/10_000, base, tax)), total+base+tax
	}
	d.note("several rates", len(bases) > 1)
	d.note("total of 0", total == 0 && d.buyable > 0)
	return append(texts, fmt.Sprintf("total %d", total))
}

func (d *drawn) rate(p *cart.Product) int64 {
	buyer, home := d.cart.Buyer.Country, d.store.Country
	class := cmp.Or(p.TaxClass, "standard")
	d.note("own country", home != "" && buyer == home)
	if home == "" || buyer == "" || buyer == home {
		if p.TaxRate != nil {
			return *p.TaxRate
		}
		return d.store.TaxRate
	}
	d.note("abroad", true)
	if class == "standard" && p.TaxRate != nil && *p.TaxRate == 0 {
		d.note("gift card abroad", true)
		return 0
	}
	rates, listed := d.store.TaxRates[buyer]
	d.note("country without rates", !listed)
	if rate, ok := rates[class]; ok {
		return rate
	}
	d.note("class without a rate", rates["standard"] > 0)
	return rates["standard"]
}

// shelf has the products of the carts below. The store is at home in Saudi Arabia, with a tax of 15 %.
var shelf = map[string]cart.Product{
	"book":      {ID: 1, Price: 1000},
	"game":      {ID: 2, Price: 2500},
	"sticker":   {ID: 3, Price: 333},
	"e-book":    {ID: 4, Price: 1500, TaxClass: "e-book"},
	"gift card": {ID: 5, Price: 5000, TaxRate: new(int64(0))},
	"course":    {ID: 6, Price: 1999, TaxRate: new(int64(50_000))},
	"old game":  {ID: 7, Price: 2000}, // no longer sold
}

// basket returns a cart such as "3 book, 1 game".
func basket(t *testing.T, text string) (c cart.Cart, products map[int64]*cart.Product) {
	products = map[int64]*cart.Product{}
	for line := range strings.SplitSeq(text, ", ") {
		number, name, _ := strings.Cut(line, " ")
		p, ok := shelf[name]
		assert.Require(t, ok, "no product %q", name)
		p.MinQuantity, p.Active, products[p.ID] = 1, name != "old game", &p
		c.Lines = append(c.Lines, cart.Line{ID: cart.NewLineID(p.ID, 0, nil), Quantity: assert.Must(strconv.ParseInt(number, 10, 64))(t)})
	}
	return c, products
}

func percent(code string, rate int64, more ...func(*Coupon)) *Coupon {
	c := fixed(code, 0, more...)
	c.Kind, c.Rate = Percent, rate
	return c
}

func fixed(code string, amount money.Amount, more ...func(*Coupon)) *Coupon {
	c := &Coupon{Code: code, Kind: Fixed, Amount: amount}
	for _, edit := range more {
		edit(c)
	}
	return c
}

func auto(c *Coupon)  { c.Automatic = true }
func joins(c *Coupon) { c.Combines = true }
func games(c *Coupon) { c.Products = []int64{2} }
func early(c *Coupon) { c.Starts = recountTime.Add(1) }
func late(c *Coupon)  { c.Expires = recountTime }
func used(c *Coupon)  { c.MaxUses = new(int64(3)) } // in a table where each coupon has been used 3 times

func from(minimum money.Amount, pieces int64) func(*Coupon) {
	return func(c *Coupon) { c.Minimum, c.MinQuantity = minimum, pieces }
}

// A bookkeeper can follow these carts. All amounts are minor units, and computed by hand. Of a price that includes the tax, the tax is
// price × rate ÷ (100 + rate): at 15 %, 2500 has 2500 × 15 ÷ 115 = 326.09.
func TestRedeem_ATableByHand(t *testing.T) {
	t.Parallel()
	type coupons []*Coupon
	home, net, yen := store.Store{Currency: "SAR", PricesIncludeTax: true}, store.Store{Currency: "SAR"}, store.Store{Currency: "JPY"}
	dinar := store.Store{Currency: "KWD", PricesIncludeTax: true}
	rates := store.TaxRates{
		"BH": {"standard": 100_000}, "DE": {"standard": 190_000, "e-book": 70_000}, "FR": {"standard": 200_000, "e-book": 55_000},
	}
	for name, tc := range map[string]struct {
		store   store.Store
		buyer   string
		cart    string
		coupons coupons // the automatic ones in the order of codes
		want    string
	}{
		// 3000 − 300 = 2700, − 200 = 2500
		"10 % from 3 pieces, and a code of 2.00 that combines": {
			home, "", "3 book",
			coupons{percent("BULK", 100_000, auto, joins, from(0, 3)), fixed("TWO", 200, joins)},
			"BULK 300 [300]; TWO 200 [200]; 15 % of 2174 is 326; total 2500",
		},
		// the other way around, it would be 500 and 750
		"percentages are first, whatever the codes": {
			home, "", "2 book",
			coupons{fixed("AAA", 500, joins), percent("ZZZ", 500_000, joins)},
			"ZZZ 1000 [1000]; AAA 500 [500]; 15 % of 435 is 65; total 500",
		},
		// 100 + 900 × 5 % = 145, less than 200
		"a single 20 % beats two that combine": {
			home, "", "1 book",
			coupons{percent("A", 100_000, auto, joins), percent("B", 50_000, auto, joins), percent("SOLO", 200_000)},
			"SOLO 200 [200]; 15 % of 696 is 104; total 800",
		},
		// 60 + 940 × 5 % = 107, more than 100
		"two that combine beat a single 10 %": {
			home, "", "1 book",
			coupons{percent("A", 60_000, auto, joins), percent("B", 50_000, auto, joins), percent("SOLO", 100_000)},
			"A 60 [60]; B 47 [47]; SOLO not_combined; 15 % of 777 is 116; total 893",
		},
		"equal: the code wins": {
			home, "", "1 book",
			coupons{fixed("AUTO", 200, auto, joins), fixed("CODE", 200)},
			"CODE 200 [200]; 15 % of 696 is 104; total 800",
		},
		"equal, and no code: those that combine win": {
			home, "", "1 book",
			coupons{fixed("A", 200, auto), fixed("B", 200, auto, joins)},
			"B 200 [200]; 15 % of 696 is 104; total 800",
		},
		"equal in all: the lower code wins, and B is lower than a": {
			home, "", "1 book",
			coupons{fixed("B", 200, auto), fixed("a", 200, auto)},
			"B 200 [200]; 15 % of 696 is 104; total 800",
		},
		// of 3833: 26.09, 65.22 and 8.69, so that the last unit goes to the sticker
		"the largest remainder gets the unit that is left": {
			home, "", "1 book, 1 game, 1 sticker",
			coupons{fixed("HUND", 100)},
			"HUND 100 [26 65 9]; 15 % of 3246 is 487; total 3733",
		},
		"equal remainders: the first line gets the unit": {
			home, "", "5 book, 1 gift card",
			coupons{fixed("ONE", 1)},
			"ONE 1 [1 0]; 15 % of 4347 is 652; 0 % of 5000 is 0; total 9999",
		},
		"half a unit, of 166.5, rounds up": {
			home, "", "10 sticker",
			coupons{percent("FIVE", 50_000)},
			"FIVE 167 [167]; 15 % of 2750 is 413; total 3163",
		},
		"only what it is for": {
			home, "", "1 book, 1 game",
			coupons{percent("GAMES", 100_000, games)},
			"GAMES 250 [0 250]; 15 % of 2826 is 424; total 3250",
		},
		"a discount of more than everything leaves 0": {
			net, "", "1 book",
			coupons{fixed("BIG", 99_999)},
			"BIG 1000 [1000]; 15 % of 0 is 0; total 0",
		},
		"a fixed discount takes no more than a percentage has left": {
			home, "", "1 book",
			coupons{fixed("BIG", 600, joins), percent("HALF", 500_000, joins)},
			"HALF 500 [500]; BIG 500 [500]; 15 % of 0 is 0; total 0",
		},
		// the game is 2500 − 1250; of 100, 1000 of 2250 gets 44.44, and 1250 of 2250 gets 55.56
		"the next is split by what is left": {
			home, "", "1 book, 1 game",
			coupons{percent("A", 500_000, games, joins), fixed("B", 100, joins)},
			"A 1250 [0 1250]; B 100 [44 56]; 15 % of 1870 is 280; total 2150",
		},
		// 900 × 19 ÷ 119 = 143.70
		"German VAT within the price": {
			home, "DE", "1 book",
			coupons{percent("TEN", 100_000)},
			"TEN 100 [100]; 19 % of 756 is 144; total 900",
		},
		// 960 × 20 % = 192, 1440 × 5.5 % = 79.2
		"net prices, French e-book rate": {
			net, "FR", "1 e-book, 1 book",
			coupons{fixed("HUND", 100)},
			"HUND 100 [60 40]; 20 % of 960 is 192; 5.5 % of 1440 is 79; total 2671",
		},
		"a gift card is untaxed in Germany, a course is not": {
			net, "DE", "1 gift card, 1 course", nil,
			"19 % of 1999 is 380; 0 % of 5000 is 0; total 7379",
		},
		// 2999 × 10 % = 299.9; 300 × 1999 ÷ 2999 = 199.97; 900 × 15 ÷ 115 = 117.39; 1799 × 5 ÷ 105 = 85.67
		"a course has 5 % at home": {
			home, "SA", "1 course, 1 book",
			coupons{percent("TEN", 100_000)},
			"TEN 300 [200 100]; 15 % of 783 is 117; 5 % of 1713 is 86; total 2699",
		},
		"an automatic one that a minimum keeps back is offered": {
			home, "", "2 book",
			coupons{percent("SAVE", 100_000, auto, from(3000, 0))},
			"SAVE lacks 1000 and 0 pieces; 15 % of 1739 is 261; total 2000",
		},
		// A has 1/2, B 2/3, C 1/4 and D 1/2 of what it needs; E lacks both
		"the three nearest are offered": {
			home, "", "2 book",
			coupons{
				fixed("A", 100, auto, from(4000, 0)), fixed("B", 100, auto, from(0, 3)), fixed("C", 100, auto, from(8000, 0)),
				fixed("D", 100, auto, from(0, 4)), fixed("E", 100, auto, from(2001, 3)),
			},
			"B lacks 0 and 1 pieces; A lacks 2000 and 0 pieces; D lacks 0 and 2 pieces; 15 % of 1739 is 261; total 2000",
		},
		"what cannot be bought counts for no minimum": {
			home, "", "1 book, 1 old game",
			coupons{fixed("SAVE", 300, auto, from(2000, 0)), percent("MANY", 100_000, from(0, 2))},
			"MANY minimum; SAVE lacks 1000 and 0 pieces; 15 % of 2609 is 391; total 3000",
		},
		"a minimum is of prices before discounts": {
			home, "", "2 book",
			coupons{percent("A", 500_000, auto, joins), fixed("B", 100, joins, from(2000, 0))},
			"A 1000 [1000]; B 100 [100]; 15 % of 783 is 117; total 900",
		},
		// 2.500 × 12.5 % = 0.3125; 2.187 × 10 ÷ 110 = 0.1988
		"three decimals, in Bahrain": {
			dinar, "BH", "1 game",
			coupons{percent("EIGHTH", 125_000)},
			"EIGHTH 313 [313]; 10 % of 1988 is 199; total 2187",
		},
		"no decimals": {yen, "", "1 sticker", coupons{percent("TEN", 100_000)}, "TEN 33 [33]; 15 % of 300 is 45; total 345"},
		"each code has its own reason": {
			home, "", "1 book",
			coupons{fixed("SOON", 1, early), fixed("OLD", 1, late), fixed("USED", 1, used), fixed("GAME", 1, games), percent("TEN", 100_000)},
			"TEN 100 [100]; SOON not_started; OLD expired; USED used_up; GAME not_applicable; 15 % of 783 is 117; total 900",
		},
	} {
		s := tc.store
		s.Country, s.TaxRate, s.TaxRates = "SA", 150_000, rates
		c, products := basket(t, tc.cart)
		c.Buyer.Country = tc.buyer
		var codes, automatic []Offered
		for _, coupon := range tc.coupons {
			if o := (Offered{Coupon: coupon, Uses: Uses{All: 3}}); coupon.Automatic {
				automatic = append(automatic, o)
			} else {
				o.Code = coupon.Code
				codes = append(codes, o)
			}
		}
		got := Of(c, &s, products, carttest.Limits)
		got.Redeem(codes, automatic, &s, recountTime)
		assert.Equal(t, receiptOf(&got), tc.want, "%s", name)
	}
}
