package server_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"os/exec"
	"path"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cmd/internal/server"
	"commerce/deploy/sample"
	"commerce/docs"
)

func TestPlayground_AShopperAddsIsRefusedLogsInAndTurnsToArabic(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), withPlayground(server.Playground{}))
	sara := s.customer(t, "1001")
	sara.add(`{"product_id":2,"qty":2}`)

	p := openPage(t, s.URL+"/")
	p.until(`document.querySelector("#cart").ariaBusy === "false"`)
	p.click(`[data-product="1"] .buy > button`)
	p.until(`document.querySelector("[data-line='1']") && document.querySelector("#cart-count").textContent === "1"`)

	p.click(`[data-product="6"] .buy > button`)
	p.until(`document.querySelector("[data-product='6'] .refusal")?.textContent.includes("out of stock")`)
	p.click(`[data-product="5"] .buy > button`)
	p.until(`document.querySelector("[name='fields.Account email']").ariaInvalid === "true"`)

	for _, count := range []string{"2", "3"} {
		p.click(`[data-product="2"] .buy > button`)
		p.until(`document.querySelector("#cart-count").textContent === "` + count + `"`)
	}
	p.click(`#use-token`)
	p.do(chromedp.SetValue(`#token-form [name="jwt"]`, sara.JWT))
	p.click(`#token-form [value="use"]`)
	p.until(`document.querySelector("#merge").textContent.includes("Concert ticket: quantity reduced from 4 to 3")`)
	sara.wantLines("2×3 1×1")

	p.click(`#language`)
	p.until(`document.documentElement.dir === "rtl" && document.querySelector("#cart-title").textContent === "السلة"`)
	p.until(`document.querySelector("[data-line='1'] .total").textContent.includes("ر.س")`)
}

// The service has no call that lists products, so the page has its own table, which must
// match the sample store.
func TestPlayground_ShowsWhatTheSampleStoreSells(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), withPlayground(server.Playground{}))
	p := openPage(t, s.URL+"/")
	shown, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](
		`import("./playground/js/shop/sample.js").then((sample) => JSON.stringify(sample.products))`, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	var got []sampleProduct
	if err := json.Unmarshal([]byte(shown), &got); err != nil {
		t.Fatal(err)
	}
	byID := map[int64]sampleProduct{}
	for _, product := range got {
		byID[product.ID] = product
	}
	want := map[int64]sampleProduct{}
	for _, product := range sample.Products()[1] {
		want[product.ID] = asSample(product)
	}
	if diff := cmp.Diff(want, byID); diff != "" {
		t.Errorf("docs/playground/js/shop/sample.js is not what deploy/sample has (-want +got):\n%s", diff)
	}
}

// sampleProduct is a row of the page's table. Prices are in major units.
type sampleProduct struct {
	ID       int64         `json:"id"`
	Name     languages     `json:"name"`
	Slug     string        `json:"slug"`
	Price    float64       `json:"price"`
	Stock    *int64        `json:"stock"` // nil: unlimited
	Inactive bool          `json:"inactive"`
	Least    int64         `json:"least"` // 0 for 1
	Most     *int64        `json:"most"`
	Step     int64         `json:"step"` // 0 for 1
	Plans    []samplePlan  `json:"plans"`
	Fields   []sampleField `json:"fields"`
}

type samplePlan struct {
	ID       int64     `json:"id"`
	Duration string    `json:"duration"`
	Label    languages `json:"label"` // nil for the duration's
	Price    float64   `json:"price"`
}

type sampleField struct {
	Name     string         `json:"name"`
	Required bool           `json:"required"`
	Options  []sampleOption `json:"options"`
}

type sampleOption struct {
	Code  string    `json:"code"`
	Name  languages `json:"name"`
	Price float64   `json:"price"`
}

// languages is a text in every language.
type languages map[locale.Locale]string

// inLanguages returns nil for no name.
func inLanguages(n locale.Name) languages {
	if n.Own == "" {
		return nil
	}
	all := languages{}
	for _, l := range locale.All() {
		all[l] = n.In(l)
	}
	return all
}

func asSample(p *cart.Product) sampleProduct {
	row := sampleProduct{
		ID: p.ID, Name: inLanguages(p.Name), Slug: p.Slug, Price: riyals(p.Price), Stock: p.Stock, Inactive: !p.Active, Most: p.MaxQuantity,
	}
	if p.MinQuantity > 1 {
		row.Least = p.MinQuantity
	}
	if p.Step > 1 {
		row.Step = p.Step
	}
	for _, plan := range p.Plans {
		row.Plans = append(row.Plans, samplePlan{plan.ID, string(plan.Duration), inLanguages(plan.Label), riyals(plan.Price)})
	}
	for _, f := range p.Fields {
		field := sampleField{Name: f.Name, Required: f.Required}
		for _, o := range f.Options {
			field.Options = append(field.Options, sampleOption{o.Code, inLanguages(o.Name), riyals(o.Price)})
		}
		row.Fields = append(row.Fields, field)
	}
	return row
}

func riyals(a money.Amount) float64 { return float64(a) / 100 }

func TestPlayground_OffIsNotFound(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t))
	for _, address := range []string{"/", "/playground/js/main.js", "/playground/demo.json"} {
		s.guest(t).refused(404, "not_found", "GET", address, "")
	}
}

const wantPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func TestPlayground_EveryFileIsServedUnderTheBasePathAndBoundToItsOrigin(t *testing.T) {
	t.Parallel()
	s := openShop(t, embeddedRedis(t), withPlayground(server.Playground{}), func(p *server.Parts) { p.BasePath = "/shop" })
	if a := get(t, s.URL); a.StatusCode != http.StatusPermanentRedirect || a.Header.Get("Location") != "/shop/" {
		t.Errorf("%s: %d to %q", s.URL, a.StatusCode, a.Header.Get("Location"))
	}
	files := 0
	err := fs.WalkDir(docs.Playground, "playground", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		address := s.URL + "/" + name
		if path.Base(name) == "index.html" {
			address = s.URL + "/"
		}
		a := get(t, address)
		if a.StatusCode != http.StatusOK || a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", name, a.StatusCode, a.Header)
		}
		if policy := a.Header.Values("Content-Security-Policy"); len(policy) != 1 || policy[0] != wantPolicy {
			t.Errorf("%s: policy %q, want %q", name, policy, wantPolicy)
		}
		if again := get(t, address, "If-None-Match", a.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: %d for its own ETag", name, again.StatusCode)
		}
		return nil
	})
	if err != nil || files < 10 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func TestPlayground_OffersNothingToOtherOriginsAndOnlyInTheDemo(t *testing.T) {
	t.Parallel()
	lent := server.Playground{Demo: &server.Demo{CustomerJWT: "a.b.c"}}
	s := openShop(t, embeddedRedis(t), withPlayground(lent), func(p *server.Parts) { p.CORSOrigins = []string{"*"} })
	a := get(t, s.URL+"/playground/demo.json", "Origin", "https://elsewhere.example.com")
	if a.StatusCode != http.StatusOK || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d, Cache-Control %q", a.StatusCode, a.Header.Get("Cache-Control"))
	}
	if origin := a.Header.Get("Access-Control-Allow-Origin"); origin != "" {
		t.Errorf("readable by pages of %s", origin)
	}
	bare := openShop(t, embeddedRedis(t), withPlayground(server.Playground{}))
	bare.guest(t).refused(404, "not_found", "GET", "/playground/demo.json", "")
	bare.guest(t).refused(404, "not_found", "PATCH", "/playground/products/1", `{"price":1}`)
	bare.guest(t).refused(404, "not_found", "POST", "/playground/subscriptions", `{}`)
}

func withPlayground(p server.Playground) func(*server.Parts) {
	return func(parts *server.Parts) { parts.Playground = &p }
}

// get returns a response without its body, and does not follow redirects. Headers are
// name, value, …
func get(t *testing.T, address string, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response
}

// page is a browser tab.
type page struct {
	t   *testing.T
	ctx context.Context
}

// patience is how long a test waits for a page.
const patience = 10 * time.Second

// openPage opens a URL in a new browser. An exception in the page, or a violation of its
// security policy, fails the test.
func openPage(t *testing.T, address string) page {
	t.Helper()
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browser(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("lang", "en"),
	)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // starts the browser, which lives as long as this context
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) }) // waits until it has ended
	p := page{t, ctx}
	if err := chromedp.Listen(ctx, p.fault); err != nil {
		t.Fatal(err)
	}
	p.do(
		chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, log.Enable, chromedp.Void{})
			return err
		}),
		chromedp.EmulateViewport(1280, 900),
		chromedp.Navigate(address),
	)
	return p
}

// browser finds Chromium by its usual names.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	t.Fatal("chromium is needed on PATH: deploy/ephemeral/install.sh installs it where apt-get is")
	return ""
}

// fault reports an exception in the page, or a violation of its policy.
func (p page) fault(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.t.Errorf("exception in the page: %v", e.ExceptionDetails)
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity {
			p.t.Errorf("the page's policy: %s", e.Entry.Text)
		}
	}
}

func (p page) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

func (p page) click(selector string) {
	p.t.Helper()
	p.do(chromedp.Click(selector))
}

// until waits for a JavaScript expression to become true.
func (p page) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](`Boolean(`+expression+`)`)); err != nil {
		shown, _ := chromedp.Run(p.ctx, chromedp.Text("main"))
		p.t.Fatalf("%v while waiting for %s; the page shows:\n%s", err, expression, shown)
	}
}
