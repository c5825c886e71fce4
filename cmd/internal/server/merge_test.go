package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"commerce/cart"
	"commerce/cart/service"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
)

// Products of the merge tests: all can be bought without limits when they are added, and
// are as their names say when the carts are merged. Those that cannot be bought then have
// limits too, which must not matter.
const (
	plain, stock5, max4, inactive, gone, soldOut, twoPlans = 11, 12, 13, 14, 15, 16, 17
)

// sellForMerge sells the products while carts are filled, or when they are merged.
func (s *shop) sellForMerge(merging bool) {
	for id := int64(plain); id <= twoPlans; id++ {
		s.offer(id, func(p *cart.Product) {
			if id == twoPlans {
				p.Plans = []cart.Plan{{ID: 171, Duration: "monthly"}, {ID: 172, Duration: "annually"}}
			}
			if !merging {
				return
			}
			p.Active = id != inactive
			p.Stock = map[int64]*int64{stock5: new(int64(5)), twoPlans: new(int64(5)), soldOut: new(int64)}[id]
			if slices.Contains([]int64{max4, inactive, soldOut}, id) {
				p.MaxQuantity = new(int64(4))
			}
		})
	}
	if merging {
		s.Catalog.Delete(s.ID, gone)
	}
}

// TestTwin_Merges compares the scripts to the rules with random carts. These are the cases of the
// rules, as clients see them.
func TestMerge_ShowsTheMergedCartAndWhatWasCut(t *testing.T) {
	const (
		same, more = "11×2 12×2 13×2 14×2 15×2 16×2 17.p171×2", "11×9 12×9 13×9 14×9 15×9 16×9 17.p171×9"
		less       = "11×1 12×1 13×1 14×1 15×1 16×1 17.p171×1"
		many       = "11×600 12×600 13×600 14×400"
	)
	for _, tc := range []struct {
		strategy        cart.Strategy
		customer, guest string
		lines, cuts     string
	}{
		{cart.Sum, "", "17.p172×2 16×1 15×2 14×3 13×9 12×9 11×1", "17.p172×2 16×1 15×2 14×3 13×4 12×5 11×1", "13 9→4, 12 9→5"},
		{cart.Sum, "11×1 14×2 17.p171×1", "16×7 15×1 12×5 13×4 17.p172×4", "11×1 14×2 17.p171×1 16×7 15×1 12×5 13×4 17.p172×4", ""},
		{cart.Sum, same, "17.p171×2 16×2 15×2 14×2 13×2 12×2 11×2", "11×4 12×4 13×4 14×4 15×4 16×4 17.p171×4", ""},
		{cart.Sum, less, more, "11×10 12×5 13×4 14×10 15×10 16×10 17.p171×5", "12 10→5, 13 10→4, 17.p171 10→5"},
		{cart.Sum, more, less, "11×10 12×9 13×9 14×10 15×10 16×10 17.p171×9", "12 10→9, 13 10→9, 17.p171 10→9"},
		{cart.Sum, many, "11×600 12×600 13×600 14×500", "11×999 12×600 13×600 14×900", "11 1200→999, 12 1200→600, 13 1200→600"},
		{cart.Sum, "17.p171×4", "17.p172×3 17.p171×1", "17.p171×4 17.p172×1", "17.p172 3→1, 17.p171 5→4"}, // one stock
		{cart.Sum, "17.p171×5", "17.p172×1", "17.p171×5 17.p172×1", ""},                                   // used up
		{cart.Max, less, more, "11×9 12×5 13×4 14×9 15×9 16×9 17.p171×5", "12 9→5, 13 9→4, 17.p171 9→5"},
		{cart.Max, more, less, more, ""},
		{cart.KeepGuest, less, more, "11×9 12×5 13×4 14×9 15×9 16×9 17.p171×5", "12 9→5, 13 9→4, 17.p171 9→5"},
		{cart.KeepGuest, "17.p171×4", "17.p172×3 17.p171×1", "17.p171×1 17.p172×1", "17.p172 3→1"},
		{cart.KeepCustomer, less, more, less, ""},
		{cart.KeepCustomer, "17.p171×4", "17.p172×3 17.p171×1", "17.p171×4 17.p172×1", "17.p172 3→1"},
	} {
		t.Run(fmt.Sprintf("%s of %q and %q", tc.strategy, tc.customer, tc.guest), func(t *testing.T) {
			onEachRedis(t, func(t *testing.T, s *shop) {
				s.sellForMerge(false)
				customer, guest := s.customer(t, "1"), s.guest(t)
				customer.fill(tc.customer)
				guest.fill(tc.guest)
				s.sellForMerge(true)
				customer.Token = guest.Token
				got := customer.wantLines(tc.lines)
				assert.Require(t, got.Merge != nil && got.Merge.Lines == int64(len(strings.Fields(tc.guest))), "report %+v", got.Merge)
				assert.Equal(t, got.cuts(t), tc.cuts, "cuts")
				assert.Equal(t, got.Version, int64(len(strings.Fields(tc.customer)))+1, "version")
				wantIssues(t, got)
			}, func(p *server.Parts) { p.Carts.Strategy = tc.strategy })
		})
	}
}

// cuts formats what a merge cut as "id requested→kept, …", and checks the codes.
func (b cartBody) cuts(t *testing.T) string {
	t.Helper()
	var cuts []string
	for _, a := range b.Merge.Adjusted {
		cuts = append(cuts, fmt.Sprintf("%s %d→%d", a.ItemID, a.Requested, a.Kept))
		want := "insufficient_stock"
		if a.ItemID == strconv.Itoa(max4) {
			want = "above_max_quantity"
		}
		assert.That(t, a.Kept > 5 || a.Code == want, "%s was cut for %s, want %s", a.ItemID, a.Code, want)
	}
	return strings.Join(cuts, ", ")
}

// wantIssues checks the issues of lines that cannot be bought.
func wantIssues(t *testing.T, b cartBody) {
	t.Helper()
	want := map[int64]string{inactive: "product_inactive", gone: "product_not_found", soldOut: "out_of_stock"}
	for _, item := range b.Items {
		code := ""
		if item.Issue != nil {
			code = item.Issue.Code
		}
		assert.That(t, want[item.ProductID] == "" || code == want[item.ProductID], "line %s has the issue %q, want %q", item.ID, code, want[item.ProductID])
	}
}

func TestMerge_NeverReplacesTheCustomersNotice(t *testing.T) {
	s := realShop(t)
	customer, guest := s.customer(t, "1"), s.guest(t)
	customer.add(`{"product_id":1,"notice":"the customer's"}`)
	customer.add(`{"product_id":7,"qty":2}`)
	guest.add(`{"product_id":7,"qty":2,"notice":"fills the place"}`)
	guest.add(`{"product_id":1,"notice":"comes too late"}`)
	guest.add(`{"product_id":5,"fields":{"0":"a@example.com"},"notice":"new"}`)
	var notices []string
	for _, item := range guest.logIn("1").cart().Items {
		notices = append(notices, *item.Notice)
	}
	assert.Equal(t, notices, []string{"the customer's", "fills the place", "new"}, "notices")
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
			s := realShop(t)
			customer, guest := s.customer(t, "1"), s.guest(t)
			customer.add(`{"product_id":2,"qty":2}`)
			guest.add(`{"product_id":2,"qty":3}`)
			customer.Token = guest.Token
			a := customer.send(tc.method, tc.path, tc.payload, tc.headers...)
			assert.Require(t, a.Status == tc.status, "%d %s", a.Status, a.Raw)
			m := a.Body.Data.Merge
			assert.That(t, m != nil && m.Lines == 1 && len(m.Adjusted) == 1 && m.Adjusted[0].Requested == 5 && m.Adjusted[0].Kept == 3 && m.Adjusted[0].Code == "insufficient_stock", "report in %s", a.Raw)
			again := customer.wantLines(tc.lines)
			assert.That(t, again.Merge != nil && again.Merge.ID == m.ID, "a minute is not over, and the report is %+v", again.Merge)
		})
	}
}

func TestMerge_IsReportedForAMinuteToTheCustomer(t *testing.T) {
	s := realShop(t)
	guest := s.guest(t).fill("1×1")
	customer, other := guest.logIn("1"), s.customer(t, "1")
	customer.send("GET", "/cart/count", "") // which may be lost
	first := other.ok("GET", "/cart", "", "If-None-Match", "*")
	report := first.Body.Data.Merge
	assert.Require(t, report != nil && report.ID != "" && report.Lines == 1 && time.Since(report.At).Abs() <= time.Minute, "another device got %s", first.Raw)
	tag := first.Header.Get("ETag")
	for _, a := range []answer{
		customer.ok("GET", "/cart", ""), customer.ok("GET", "/cart/summary", ""),
		customer.refused(422, "out_of_stock", "POST", "/cart/add", `{"product_id":6}`),
		customer.refused(422, "validation_failed", "POST", "/cart/add", `{"product_id":1,"qty":"x"}`),
		customer.refused(400, "malformed_json", "POST", "/cart/add", `{`),
		customer.add(`{"product_id":1}`, "If-Match", tag),
	} {
		m := a.Body.Data.Merge
		assert.That(t, m != nil && m.ID == report.ID, "the report is %+v in %s", m, a.Raw)
	}
	tag = other.tag()
	assert.Equal(t, other.send("GET", "/cart", "", "If-None-Match", tag).Status, http.StatusNotModified, "status of an unchanged cart with the report")
	s.pass(t, time.Minute+time.Second)
	assert.That(t, other.ok("GET", "/cart", "", "If-None-Match", tag).Body.Data.Merge == nil, "the report is there after a minute")
	assert.Equal(t, other.send("GET", "/cart", "", "If-None-Match", "*").Status, 304, "status a minute after the merge")
	other.add(`{"product_id":1}`)
	members := s.Redis.HKeys(t.Context(), s.customerKey(other.ID)).Val()
	assert.That(t, !slices.Contains(members, "g"), "after a minute and a change, the report is still stored: %q", members)
}

func TestMerge_IsNotDrivenByHEAD(t *testing.T) {
	s := realShop(t)
	guest := s.guest(t).fill("1×1")
	customer := guest.logIn("1")
	for _, path := range []string{"/cart", "/cart/count", "/cart/summary", "/cart/validate"} {
		a := customer.send("HEAD", path, "")
		assert.That(t, a.Status < 500, "HEAD %s: %d", path, a.Status)
	}
	guest.wantLines("1×1")
	s.customer(t, "1").wantLines("")
	customer.wantLines("1×1")
}

func TestMerge_LeavesTheTokenUsable(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		guest := s.guest(t)
		before, _, _ := strings.Cut(guest.add(`{"product_id":1}`).Header.Get("ETag"), ".")
		guest.logIn("1").cart()
		s.wantTTLs(t)
		got := guest.wantLines("")
		assert.That(t, got.Version == 0 && got.ExpiresAt == nil, "the guest's cart after the merge: %+v", got)
		a := guest.add(`{"product_id":7,"qty":2}`)
		after, _, _ := strings.Cut(a.Header.Get("ETag"), ".")
		assert.That(t, after != before && a.Body.Data.Version == 1, "cart %s at version %d, before %s", after, a.Body.Data.Version, before)
		guest.logIn("1").wantLines("1×1 7×2")
		s.wantTTLs(t)
	})
}

// flaky is a catalog that fails for one product while it is down.
type flaky struct {
	service.Catalog
	down atomic.Int64
}

// flakyShop opens a shop with such a catalog.
func flakyShop(t *testing.T) (*shop, *flaky) {
	t.Helper()
	source := &flaky{}
	return realShop(t, func(p *server.Parts) { source.Catalog, p.Carts.Catalog = p.Carts.Catalog, source }), source
}

func (f *flaky) Reachable() bool { return f.down.Load() == 0 }

func (f *flaky) Products(ctx context.Context, store int64, ids []int64) (map[int64]*cart.Product, error) {
	if slices.Contains(ids, f.down.Load()) {
		return nil, errors.New("catalog is down")
	}
	return f.Catalog.Products(ctx, store, ids)
}

func TestMerge_AnEmptiedGuestsCartBringsNothing(t *testing.T) {
	onEachRedis(t, func(t *testing.T, s *shop) {
		guest := s.guest(t).fill("1×1")
		guest.ok("DELETE", "/cart/clear", "")
		got := guest.logIn("1").cart()
		assert.That(t, got.Version == 0 && got.Merge == nil && got.ExpiresAt == nil, "the customer's cart: %+v", got)
		assert.Equal(t, len(s.keys(t)), 0, "keys that are left")
	})
}

// small limits carts to five lines, and to ten after a merge.
func small(p *server.Parts) { p.Carts.Limits.Lines = 5 }

// sell makes the store sell products 101 to 100+n.
func (s *shop) sell(n int64) {
	for i := range n {
		s.offer(101 + i)
	}
}

func TestMerge_WithoutRoomLeavesTheGuestsCartUnchanged(t *testing.T) {
	s := realShop(t, small)
	s.sell(20)
	customer := s.customer(t, "1").fill("101×1 102×1 103×1 104×1 105×1")
	customer.Token = s.guest(t).fill("106×1 107×1 108×1 109×1 110×1").Token
	roomy := customer.cart()
	assert.Require(t, len(roomy.Items) == 10 && roomy.Merge.Code == nil && roomy.Merge.Lines == 5, "with room for it: %q, %+v", roomy.lines(), roomy.Merge)
	guest := s.visitor(t)
	guest.add(`{"product_id":111}`, "Idempotency-Key", "k")
	customer.Token = guest.Token
	full := func(a answer) {
		t.Helper()
		m := a.Body.Data.Merge
		assert.That(t, m != nil && m.Lines == 0 && len(m.Adjusted) == 0 && m.Code != nil && *m.Code == "cart_full", "report in %s", a.Raw)
	}
	full(customer.ok("GET", "/cart", ""))
	full(customer.ok("GET", "/cart/count", ""))
	full(customer.ok("GET", "/cart/summary", ""))
	full(customer.ok("GET", "/cart/validate", ""))
	full(customer.ok("PATCH", "/cart/items/101", `{"quantity":2}`))
	full(customer.refused(422, "cart_full", "POST", "/cart/add", `{"product_id":112}`))
	full(customer.refused(400, "malformed_json", "POST", "/cart/add", `{`))
	assert.That(t, customer.add(`{"product_id":111}`, "Idempotency-Key", "k").replayed(t), "the guest's own change was applied again")
	guest.wantLines("111×1")
	removed := customer.ok("DELETE", "/cart/items/110", "") // makes room for the next request
	assert.That(t, removed.Body.Data.Merge != nil, "no report in %s", removed.Raw)
	got := customer.cart()
	assert.That(t, got.Merge != nil && got.Merge.Code == nil && got.Merge.Lines == 1 && slices.ContainsFunc(got.Items, func(i itemBody) bool { return i.ID == "111" }), "with room again: %q, %+v", got.lines(), got.Merge)
	guest.wantLines("")
}

func TestMerge_CountsTextToo(t *testing.T) {
	s := realShop(t, func(p *server.Parts) { p.Carts.Limits.CartText, p.Carts.Limits.LineText = 40, 40 })
	line := func(product int, text string) string {
		return fmt.Sprintf(`{"product_id":%d,"notice":%q}`, product, text)
	}
	const forty = "forty bytes of text, forty bytes of text"
	customer, guest, other := s.customer(t, "1"), s.guest(t), s.guest(t)
	customer.add(line(1, forty))
	guest.add(line(1, forty)) // counts, although the customer's notice will be kept
	other.add(`{"product_id":2,"notice":"x"}`)
	customer.Token = guest.Token
	customer.wantLines("1×2")
	customer.add(`{"product_id":2}`)
	s.guest(t)
	customer.Token = other.Token
	customer.wantLines("1×2 2×2") // 40 bytes and 1
	full := s.guest(t)
	full.add(line(2, forty))
	customer.Token = full.Token
	got := customer.cart()
	assert.That(t, got.Merge != nil && got.Merge.Code != nil, "41 bytes and 40 are more than 80: %q, %+v", got.lines(), got.Merge)
}
