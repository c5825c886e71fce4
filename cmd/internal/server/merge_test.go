package server_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/service"
	"commerce/cmd/internal/server"
	"commerce/deploy/ephemeral"
)

var strategies = []cart.Strategy{cart.Sum, cart.Max, cart.KeepGuest, cart.KeepCustomer}

// onEachStrategy runs a test on every kind of Redis with every strategy.
func onEachStrategy(t *testing.T, test func(*testing.T, *shop, cart.Strategy)) {
	t.Helper()
	t.Parallel()
	for name, url := range map[string]func(testing.TB) string{
		"embedded": embeddedRedis,
		"single":   ephemeral.Redis,
		"cluster":  ephemeral.Cluster,
	} {
		for _, strategy := range strategies {
			t.Run(name+", "+string(strategy), func(t *testing.T) {
				t.Parallel()
				test(t, openShop(t, url(t), func(p *server.Parts) { p.Strategy = strategy }), strategy)
			})
		}
	}
}

// held is a line of a cart in the model below.
type held struct {
	id       string
	quantity int64
}

func (h held) product() int64 {
	digits, _, _ := strings.Cut(h.id, ".")
	id, _ := strconv.ParseInt(digits, 10, 64)
	return id
}

func (h held) String() string { return fmt.Sprintf("%s×%d", h.id, h.quantity) }

// heldIn parses "11×2 12×1".
func heldIn(t *testing.T, lines string) []held {
	t.Helper()
	var all []held
	for word := range strings.FieldsSeq(lines) {
		id, digits, _ := strings.Cut(word, "×")
		quantity, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			t.Fatalf("%q: %v", word, err)
		}
		all = append(all, held{id, quantity})
	}
	return all
}

// modelMerge computes a merge without Redis, requests or crashes: the merged lines, and the
// cut ones as "id requested→kept".
func modelMerge(strategy cart.Strategy, customer, guest []held, products map[int64]*cart.Product) (lines []held, cuts []string) {
	lines = slices.Clone(customer)
	for _, g := range guest {
		i := slices.IndexFunc(lines, func(l held) bool { return l.id == g.id })
		both := i >= 0
		if !both {
			lines, i = append(lines, held{id: g.id}), len(lines)
		}
		had := lines[i].quantity
		asked := g.quantity
		switch {
		case both && strategy == cart.Sum:
			asked = had + g.quantity
		case both && strategy == cart.Max:
			asked = max(had, g.quantity)
		case both && strategy == cart.KeepCustomer:
			asked = had
		}
		lines[i].quantity = modelCut(asked, had, lines, i, products[g.product()])
		if kept := lines[i].quantity; kept != asked {
			cuts = append(cuts, fmt.Sprintf("%s %d→%d", g.id, asked, kept))
		}
	}
	return lines, cuts
}

// modelCut limits line i to what may be bought, but not below what the customer had, and
// not to 0. A line that cannot be bought at all is unchanged.
func modelCut(asked, had int64, lines []held, i int, p *cart.Product) int64 {
	if p == nil || !p.Active || (p.Stock != nil && *p.Stock == 0) {
		return asked
	}
	most := int64(999)
	if p.MaxQuantity != nil {
		most = min(most, *p.MaxQuantity)
	}
	if p.Stock != nil {
		left := *p.Stock
		for j, other := range lines {
			if j != i && other.product() == p.ID {
				left -= other.quantity
			}
		}
		most = min(most, left)
	}
	return max(min(asked, most), min(asked, had), 1)
}

// Products of the merge tests: all can be bought without limits when they are added, and
// are as their names say when the carts are merged. Those that cannot be bought then have
// limits too, which must not matter.
const (
	plain, stock5, max4, inactive, gone, soldOut, twoPlans = 11, 12, 13, 14, 15, 16, 17
)

// mergeProducts returns the products while carts are filled, and when they are merged.
func mergeProducts(merging bool) map[int64]*cart.Product {
	products := map[int64]*cart.Product{}
	for id := int64(plain); id <= twoPlans; id++ {
		products[id] = &cart.Product{ID: id, Name: locale.Named(fmt.Sprintf("P%d", id)), Active: true, MinQuantity: 1, Price: 100}
	}
	products[twoPlans].Plans = []cart.Plan{{ID: 171, Duration: "monthly"}, {ID: 172, Duration: "annually"}}
	if merging {
		none, four, five := int64(0), int64(4), int64(5)
		products[stock5].Stock, products[twoPlans].Stock, products[soldOut].Stock = &five, &five, &none
		products[inactive].Active = false
		for _, id := range []int64{max4, inactive, soldOut} {
			products[id].MaxQuantity = &four
		}
		delete(products, gone)
	}
	return products
}

func (s *shop) sellForMerge(merging bool) {
	products := mergeProducts(merging)
	for id := int64(plain); id <= twoPlans; id++ {
		if p := products[id]; p != nil {
			s.Catalog.Put(s.ID, p)
		} else {
			s.Catalog.Delete(s.ID, id)
		}
	}
}

// fill adds lines one by one.
func (c *shopper) fill(lines []held) {
	c.t.Helper()
	for _, l := range lines {
		plan := ""
		if _, id, ok := strings.Cut(l.id, ".p"); ok {
			plan = `,"subscription_plan":` + id
		}
		c.add(fmt.Sprintf(`{"product_id":%d,"qty":%d%s}`, l.product(), l.quantity, plan))
	}
}

// mergeCases are pairs of a customer's and a guest's cart.
var mergeCases = []struct{ name, customer, guest string }{
	{"into an empty cart", "", "17.p172×2 16×1 15×2 14×3 13×9 12×9 11×1"},
	{"other lines", "11×1 14×2 17.p171×1", "16×7 15×1 12×5 13×4 17.p172×4"},
	{"the same lines", "11×2 12×2 13×2 14×2 15×2 16×2 17.p171×2", "17.p171×2 16×2 15×2 14×2 13×2 12×2 11×2"},
	{"the guest has more", "11×1 12×1 13×1 14×1 15×1 16×1 17.p171×1", "11×9 12×9 13×9 14×9 15×9 16×9 17.p171×9"},
	{"the customer has more", "11×9 12×9 13×9 14×9 15×9 16×9 17.p171×9", "11×1 12×1 13×1 14×1 15×1 16×1 17.p171×1"},
	{"at the bounds", "12×5 13×4 17.p171×3 17.p172×2", "17.p172×2 17.p171×3 13×4 12×5"},
	{"past 999", "11×600 12×600 13×600 14×400", "11×600 12×600 13×600 14×500"},
	{"two lines share a stock", "17.p171×4", "17.p172×3 17.p171×1"},
	{"a stock that another line has used up", "17.p171×5", "17.p172×1"},
}

func TestMerge_MatchesTheModel(t *testing.T) {
	onEachStrategy(t, func(t *testing.T, s *shop, strategy cart.Strategy) {
		for _, tc := range mergeCases {
			wantModelMerge(t, s, strategy, tc.name, heldIn(t, tc.customer), heldIn(t, tc.guest))
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 4 {
			customer, guest := randomLines(random), randomLines(random)
			wantModelMerge(t, s, strategy, fmt.Sprintf("%v and %v", customer, guest), customer, guest)
		}
	})
}

func randomLines(r *rand.Rand) []held {
	ids := []string{"11", "12", "13", "14", "15", "16", "17.p171", "17.p172"}
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	lines := make([]held, 1+r.IntN(len(ids)))
	for i := range lines {
		lines[i] = held{ids[i], 1 + r.Int64N(7)}
	}
	return lines
}

// wantModelMerge fills two carts, merges them and compares everything that a client sees.
func wantModelMerge(t *testing.T, s *shop, strategy cart.Strategy, name string, customerLines, guestLines []held) {
	t.Helper()
	s.sellForMerge(false)
	customer, guest := s.customer(t, strconv.FormatInt(nextStore(), 10)), s.guest(t)
	customer.fill(customerLines)
	guest.fill(guestLines)
	s.sellForMerge(true)
	customer.Token = guest.Token
	got := customer.cart()

	wantLines, wantCuts := modelMerge(strategy, customerLines, guestLines, mergeProducts(true))
	if diff := cmp.Diff(strings.Trim(fmt.Sprint(wantLines), "[]"), got.lines()); diff != "" {
		t.Errorf("%s: lines (-model +cart)\n%s", name, diff)
	}
	if got.Merge == nil {
		t.Fatalf("%s: no report", name)
	}
	var cuts []string
	for _, a := range got.Merge.Adjusted {
		cuts = append(cuts, fmt.Sprintf("%s %d→%d", a.ItemID, a.Requested, a.Kept))
		if want := cutCode(a.ItemID); a.Kept < 5 && a.Code != want {
			t.Errorf("%s: %s was cut for %s, want %s", name, a.ItemID, a.Code, want)
		}
	}
	if diff := cmp.Diff(wantCuts, cuts); diff != "" {
		t.Errorf("%s: cuts (-model +report)\n%s", name, diff)
	}
	if got.Merge.Lines != int64(len(guestLines)) {
		t.Errorf("%s: %d lines reported of %d", name, got.Merge.Lines, len(guestLines))
	}
	if want := int64(len(customerLines)) + 1; got.Version != want {
		t.Errorf("%s: version %d, want %d", name, got.Version, want)
	}
	wantIssues(t, name, got)
}

func cutCode(item string) string {
	if item == strconv.Itoa(max4) {
		return "above_max_quantity"
	}
	return "insufficient_stock"
}

// wantIssues checks the issues of lines that cannot be bought.
func wantIssues(t *testing.T, name string, b cartBody) {
	t.Helper()
	want := map[int64]string{inactive: "product_inactive", gone: "product_not_found", soldOut: "out_of_stock"}
	for _, item := range b.Items {
		code := ""
		if item.Issue != nil {
			code = item.Issue.Code
		}
		if want[item.ProductID] != "" && code != want[item.ProductID] {
			t.Errorf("%s: line %s has the issue %q, want %q", name, item.ID, code, want[item.ProductID])
		}
	}
}

// logIn returns the same shopper after a login, who still sends the guest's token.
func (c *shopper) logIn(customer string) *shopper {
	return &shopper{t: c.t, shop: c.shop, Token: c.Token, JWT: c.shop.token(c.t, customer)}
}

// withoutToken returns the same customer on a device without a guest's token.
func (c *shopper) withoutToken() *shopper {
	return &shopper{t: c.t, shop: c.shop, JWT: c.JWT}
}

func TestMerge_NeverReplacesTheCustomersNotice(t *testing.T) {
	onEachStrategy(t, func(t *testing.T, s *shop, _ cart.Strategy) {
		customer, guest := s.customer(t, "1"), s.guest(t)
		customer.add(`{"product_id":1,"notice":"the customer's"}`)
		customer.add(`{"product_id":7,"qty":2}`)
		guest.add(`{"product_id":7,"qty":2,"notice":"fills the place"}`)
		guest.add(`{"product_id":1,"notice":"comes too late"}`)
		guest.add(`{"product_id":5,"fields":{"0":"a@example.com"},"notice":"new"}`)
		items := guest.logIn("1").cart().Items
		var notices []string
		for _, item := range items {
			notices = append(notices, *item.Notice)
		}
		if diff := cmp.Diff([]string{"the customer's", "fills the place", "new"}, notices); diff != "" {
			t.Errorf("notices (-want +got)\n%s", diff)
		}
	})
}

func TestMerge_MayExceedTheLimitOfLines(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		customer, guest := s.customer(t, "1"), s.guest(t)
		var want []string
		for i := range int64(120) {
			s.Catalog.Put(s.ID, &cart.Product{ID: 100 + i, Name: locale.Named("P"), Active: true, MinQuantity: 1, Price: 100})
			c := customer
			if i >= 60 {
				c = guest
			}
			c.add(fmt.Sprintf(`{"product_id":%d}`, 100+i))
			want = append(want, fmt.Sprintf("%d×1", 100+i))
		}
		customer.Token = guest.Token
		customer.wantLines(strings.Join(want, " "))
		customer.refused(422, "cart_full", "POST", "/cart/add", `{"product_id":1}`)
		customer.add(`{"product_id":100}`)
	})
}

func TestMerge_HappensFirstInEveryRequest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		method, path, payload string
		status                int
		headers               []string
		lines                 string
	}{
		{"GET", "/cart", "", 200, nil, "2×3"},
		{"GET", "/cart/count", "", 200, nil, "2×3"},
		{"GET", "/cart/summary", "", 200, nil, "2×3"},
		{"GET", "/cart/validate", "", 200, nil, "2×3"},
		{"GET", "/cart", "", 400, []string{"If-None-Match", "no tag"}, "2×3"},
		{"POST", "/cart/add", `{"product_id":1}`, 200, nil, "2×3 1×1"},
		{"POST", "/cart/add", `{"product_id":6}`, 422, nil, "2×3"},
		{"POST", "/cart/add", `{"product_id":2}`, 422, nil, "2×3"},
		{"POST", "/cart/add", `{"product_id":404}`, 404, nil, "2×3"},
		{"POST", "/cart/add", `not JSON`, 400, nil, "2×3"},
		{"POST", "/cart/add", `{"product_id":1}`, 412, []string{"If-Match", `"other.1"`}, "2×3"},
		{"POST", "/cart/add", `{"product_id":1}`, 400, []string{"Idempotency-Key", "no key"}, "2×3"},
		{"POST", "/cart/coupon", `{"coupon":"TEN"}`, 200, nil, "2×3"},
		{"PATCH", "/cart/items/2", `{"quantity":1}`, 200, nil, "2×1"},
		{"PATCH", "/cart/items/404", `{"quantity":1}`, 404, nil, "2×3"},
		{"DELETE", "/cart/items/2", "", 200, nil, ""},
		{"DELETE", "/cart/clear", "", 200, nil, ""},
	} {
		t.Run(fmt.Sprint(tc.method, " ", tc.path, " ", tc.status), func(t *testing.T) {
			onRealRedis(t, func(t *testing.T, s *shop) {
				customer, guest := s.customer(t, "1"), s.guest(t)
				customer.add(`{"product_id":2,"qty":2}`)
				guest.add(`{"product_id":2,"qty":3}`)
				customer.Token = guest.Token
				a := customer.send(tc.method, tc.path, tc.payload, tc.headers...)
				if a.Status != tc.status {
					t.Fatalf("%d %s", a.Status, a.Raw)
				}
				m := a.Body.Data.Merge
				if m == nil || m.Lines != 1 || len(m.Adjusted) != 1 ||
					m.Adjusted[0].Requested != 5 || m.Adjusted[0].Kept != 3 || m.Adjusted[0].Code != "insufficient_stock" {
					t.Errorf("report in %s", a.Raw)
				}
				if again := customer.wantLines(tc.lines); again.Merge == nil || again.Merge.ID != m.ID {
					t.Errorf("a minute is not over, and the report is %+v", again.Merge)
				}
			})
		})
	}
}

func TestMerge_IsReportedForAMinuteToTheCustomer(t *testing.T) {
	onRealRedis(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		guest.add(`{"product_id":1}`)
		customer, other := guest.logIn("1"), s.customer(t, "1")
		customer.send("GET", "/cart/count", "") // which may be lost
		first := other.ok("GET", "/cart", "", "If-None-Match", "*")
		report := first.Body.Data.Merge
		if report == nil || report.ID == "" || report.Lines != 1 || time.Since(report.At).Abs() > time.Minute {
			t.Fatalf("another device got %s", first.Raw)
		}
		tag := first.Header.Get("ETag")
		for _, a := range []answer{
			customer.ok("GET", "/cart", ""), customer.ok("GET", "/cart/summary", ""),
			customer.refused(422, "out_of_stock", "POST", "/cart/add", `{"product_id":6}`),
			customer.refused(422, "validation_failed", "POST", "/cart/add", `{"product_id":1,"qty":"x"}`),
			customer.refused(400, "malformed_json", "POST", "/cart/add", `{`),
			customer.add(`{"product_id":1}`, "If-Match", tag),
		} {
			if m := a.Body.Data.Merge; m == nil || m.ID != report.ID {
				t.Errorf("the report is %+v in %s", m, a.Raw)
			}
		}
		tag = other.ok("GET", "/cart", "").Header.Get("ETag")
		if a := other.send("GET", "/cart", "", "If-None-Match", tag); a.Status != http.StatusNotModified {
			t.Errorf("unchanged, with the report: %d", a.Status)
		}
		s.pass(t, time.Minute+time.Second)
		if a := other.ok("GET", "/cart", "", "If-None-Match", tag); a.Body.Data.Merge != nil {
			t.Errorf("after a minute: %s", a.Raw)
		}
		other.add(`{"product_id":1}`)
		if members := s.Redis.HKeys(t.Context(), s.customerKey(other)).Val(); slices.Contains(members, "g") {
			t.Errorf("after a minute and a change, the report is still stored: %q", members)
		}
	})
}

func TestMerge_IsNotDrivenByHEAD(t *testing.T) {
	onRealRedis(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		guest.add(`{"product_id":1}`)
		customer := guest.logIn("1")
		for _, path := range []string{"/cart", "/cart/count", "/cart/summary", "/cart/validate"} {
			if a := customer.send("HEAD", path, ""); a.Status >= 500 {
				t.Errorf("HEAD %s: %d", path, a.Status)
			}
		}
		guest.wantLines("1×1")
		s.customer(t, "1").wantLines("")
		customer.wantLines("1×1")
	})
}

func TestMerge_LeavesTheTokenUsable(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		before, _, _ := strings.Cut(guest.add(`{"product_id":1}`).Header.Get("ETag"), ".")
		guest.logIn("1").cart()
		s.wantTTLs(t)
		if got := guest.wantLines(""); got.Version != 0 || got.ExpiresAt != nil {
			t.Errorf("the guest's cart after the merge: %+v", got)
		}
		a := guest.add(`{"product_id":7,"qty":2}`)
		after, _, _ := strings.Cut(a.Header.Get("ETag"), ".")
		if after == before || a.Body.Data.Version != 1 {
			t.Errorf("cart %s at version %d, before %s", after, a.Body.Data.Version, before)
		}
		guest.logIn("1").wantLines("1×1 7×2")
		s.wantTTLs(t)
	})
}

func TestMerge_ClearingAfterwardsIsFinal(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		guest.add(`{"product_id":1}`)
		customer := guest.logIn("1")
		customer.cart()
		customer.ok("DELETE", "/cart/clear", "")
		customer.wantLines("")
		customer.withoutToken().wantLines("")
		s.wantTTLs(t)
	})
}

func TestMerge_IncludesIdempotencyKeys(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		guest.cart()
		guest.add(`{"product_id":1,"qty":2}`, "Idempotency-Key", "k")
		customer := guest.logIn("1")
		again := customer.add(`{"product_id":1,"qty":2}`, "Idempotency-Key", "k")
		if again.Header.Get("Idempotency-Replayed") != "true" || again.Body.Data.lines() != "1×2" {
			t.Errorf("repeated after the login: %s", again.Raw)
		}
		customer.refused(409, "idempotency_conflict", "POST", "/cart/add", `{"product_id":1}`, "Idempotency-Key", "k")
		customer.withoutToken().wantLines("1×2")
		s.wantTTLs(t)
	})
}

func TestMerge_OfTwoCustomersOnOneTokenTheFirstGetsIt(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		guest.add(`{"product_id":1,"qty":3}`)
		customers := make([]*shopper, 8)
		at(len(customers), func(i int) {
			customers[i] = guest.logIn(strconv.Itoa(i))
			customers[i].cart()
		})
		var all int64
		for _, c := range customers {
			all += c.withoutToken().cart().Count
		}
		if all != 3 {
			t.Errorf("%d pieces among all customers, the guest had 3", all)
		}
	})
}

func TestMerge_DevicesAtOnce(t *testing.T) {
	t.Parallel()
	t.Run("that carry one token add it once", func(t *testing.T) {
		onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
			guest := s.guest(t)
			guest.add(`{"product_id":1,"qty":3}`)
			var reports sync.Map
			at(6, func(int) {
				if m := guest.logIn("1").cart().Merge; m != nil {
					reports.Store(m.ID, true)
				}
			})
			got, n := guest.logIn("1").wantLines("1×3"), 0
			for range reports.Range {
				n++
			}
			if got.Version != 1 || n != 1 {
				t.Errorf("version %d after %d reports", got.Version, n)
			}
		})
	})
	t.Run("that carry a token each all find theirs in", func(t *testing.T) {
		onEachRedis(t, func(t *testing.T, s *shop) {
			at(6, func(i int) {
				guest := s.guest(t)
				guest.add(fmt.Sprintf(`{"product_id":1,"qty":%d}`, i+1))
				if got := guest.logIn("1").cart(); got.Count < int64(i+1) {
					t.Errorf("device %d had %d, and got %q", i, i+1, got.lines())
				}
			})
			s.customer(t, "1").wantLines("1×21")
		})
	})
}

// Guests and a customer add while their carts are merged again and again. Finally, every
// accepted add counts exactly once.
func TestMerge_RacesWithAddsOnBothSides(t *testing.T) {
	onEachRedisAndCluster(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		guest.cart()
		customer := guest.logIn("1")
		at(50, func(i int) {
			switch {
			case i < 20:
				s.with(t, guest).add(`{"product_id":1}`)
			case i < 40:
				customer.withoutToken().add(`{"product_id":1}`)
			default:
				s.with(t, customer).cart()
			}
		})
		s.with(t, customer).wantLines("1×40")
		customer.withoutToken().wantLines("1×40")
		s.wantTTLs(t)
	})
}

// flaky is a catalog that fails for one product while it is down.
type flaky struct {
	service.Catalog
	down atomic.Int64
}

var errDown = errors.New("catalog is down")

func (f *flaky) Reachable() bool { return f.down.Load() == 0 }

func (f *flaky) Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error) {
	if slices.Contains(ids, f.down.Load()) {
		return nil, errDown
	}
	return f.Catalog.Products(ctx, store, ids)
}

func TestMerge_WaitsForTheCatalog(t *testing.T) {
	t.Parallel()
	source := &flaky{}
	s := openShop(t, ephemeral.Redis(t), func(p *server.Parts) { source.Catalog, p.Catalog = p.Catalog, source })
	guest := s.guest(t)
	guest.add(`{"product_id":7,"qty":2}`)
	customer := guest.logIn("1")
	source.down.Store(7)
	if got := customer.add(`{"product_id":1}`).Body.Data; got.lines() != "1×1" || got.Merge != nil {
		t.Errorf("unmerged: %q, %+v", got.lines(), got.Merge)
	}
	customer.wantLines("1×1")
	if strings.Contains(s.Log.String(), guest.Token) {
		t.Error("the token is in the log")
	}
	source.down.Store(0)
	if got := customer.wantLines("1×1 7×2"); got.Merge == nil || got.Merge.Lines != 1 {
		t.Errorf("later: %+v", got.Merge)
	}
	guest.wantLines("")
}

func TestMerge_AnEmptiedGuestsCartBringsNothing(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		guest.add(`{"product_id":1}`)
		guest.ok("DELETE", "/cart/clear", "")
		customer := guest.logIn("1")
		if got := customer.cart(); got.Version != 0 || got.Merge != nil || got.ExpiresAt != nil {
			t.Errorf("the customer's cart: %+v", got)
		}
		if keys := s.keys(t); len(keys) != 0 {
			t.Errorf("left behind: %v", keys)
		}
	})
}

// A merge renews the cart's TTL, like any other change.
func TestMerge_RenewsTheCustomersTTL(t *testing.T) {
	onRealRedis(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		guest.add(`{"product_id":1}`)
		got := guest.logIn("1").cart()
		expires, err := time.Parse(time.RFC3339, *got.ExpiresAt)
		if err != nil || time.Until(expires) < 2159*time.Hour {
			t.Errorf("it expires at %v, %v", expires, err)
		}
	})
}
