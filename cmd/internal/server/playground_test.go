package server_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"commerce/auth/locale"
	"commerce/cart"
	"commerce/cart/money"
	"commerce/cmd/internal/pages"
	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/sample"
	"commerce/docs"
)

func TestPlayground_AShopperAddsIsRefusedLogsInAndTurnsToArabic(t *testing.T) {
	p, s := openStore(t)
	sara := s.customer(t, "1001").fill("2×3")
	p.expect("422 /cart/add")
	p.addProduct("1")
	p.addProduct("2")
	p.click(`[data-product="6"] .add`)
	p.until(`document.querySelector("[data-outcome='refused']")?.textContent.includes("out of stock")`)
	p.click(`[data-product="5"] .add`)
	p.click(`.choose .primary`)
	p.until(`document.querySelector(".choose [name='fields.Account email']").ariaInvalid === "true"`)

	p.selects(`[data-part="account"]`, "token")
	p.do(chromedp.SetValue(`#token-form [name="jwt"]`, sara.JWT))
	p.click(`#token-form [value="use"]`)
	p.until(`document.querySelector("[data-outcome='merged']")?.textContent.includes("Concert ticket: 4 are too many, so 3 were kept.")`)
	sara.wantLines("2×3 1×1")

	p.click(`#language`)
	p.until(`document.documentElement.dir === "rtl" && document.querySelector(".basket h3").textContent === "السلة"`)
	p.until(`document.querySelector("[data-line='1'] .total").textContent.includes("ر.س")`)
}

// A button that scrolls the shelf covers a part of a product, so it is there only if it leads somewhere.
func TestPlayground_ShelfHasButtonsOnlyTowardMoreProducts(t *testing.T) {
	slow(t)
	s := openShop(t, embeddedRedis(t), withPlayground(pages.Playground{}))
	for _, l := range []look{{width: 320}, {language: "ar"}} {
		p := openPageAs(t, s.URL+"/#store", l)
		turns := func(want string) {
			t.Helper()
			p.until(`[...document.querySelectorAll("#device-a .turn")].filter((b) => b.checkVisibility()).map((b) => b.dataset.part).join() === "` + want + `"`)
		}
		turns("tiles-on")
		p.tap(deviceA + `[data-part="tiles-on"]`)
		turns("tiles-back,tiles-on")
		p.run(inA(`.tile:last-child`) + `.scrollIntoView({ inline: "end" })`)
		turns("tiles-back")
	}
}

// No call lists products, so the page has its own table, which must match the sample.
func TestPlayground_ShowsWhatTheSampleStoreSells(t *testing.T) {
	p, _ := openStore(t)
	shown := evaluate[[]map[string]any](p, `import("./playground/js/shop/sample.js").then((sample) => sample.products)`)
	byID, want := map[any]any{}, map[any]any{}
	for _, product := range shown {
		byID[product["id"]] = product
	}
	for _, product := range sample.Products()[1] {
		want[float64(product.ID)] = sparse(decode[any](t, assert.Must(json.Marshal(asSample(product)))(t)))
	}
	assert.Equal(t, byID, want, "docs/playground/js/shop/sample.js, compared with deploy/sample")
}

type row map[string]any

// asSample returns a product as in the page's table. Prices are in major units.
func asSample(p *cart.Product) row {
	var plans, fields []row
	for _, plan := range p.Plans {
		plans = append(plans, row{"id": plan.ID, "duration": plan.Duration, "label": inLanguages(plan.Label), "price": riyals(plan.Price)})
	}
	for _, f := range p.Fields {
		var options []row
		for _, o := range f.Options {
			options = append(options, row{"code": o.Code, "name": inLanguages(o.Name), "price": riyals(o.Price)})
		}
		fields = append(fields, row{"name": f.Name, "required": f.Required, "options": options})
	}
	made := row{
		"id": p.ID, "name": inLanguages(p.Name), "slug": p.Slug, "price": riyals(p.Price), "stock": p.Stock, "inactive": !p.Active,
		"most": p.MaxQuantity, "plans": plans, "fields": fields,
	}
	if p.MinQuantity > 1 {
		made["least"] = p.MinQuantity
	}
	if p.Step > 1 {
		made["step"] = p.Step
	}
	return made
}

func sparse(value any) any {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, member any) bool { return sparse(member) == nil || member == false })
	case []any:
		for _, item := range v {
			sparse(item)
		}
	}
	return value
}

func inLanguages(n locale.Name) any {
	if n.Own == "" {
		return nil
	}
	all := map[locale.Locale]string{}
	for _, l := range locale.All() {
		all[l] = n.In(l)
	}
	return all
}

func riyals(a money.Amount) float64 { return float64(a) / 100 }

const wantPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func TestPlayground_EveryFileIsServedUnderTheBasePathAndBoundToItsOrigin(t *testing.T) {
	s := newShop(t, withPlayground(pages.Playground{}), func(p *server.Parts) { p.BasePath = "/shop" })
	home := get(t, s.URL)
	assert.That(t, home.StatusCode == http.StatusPermanentRedirect && home.Header.Get("Location") == "shop/", "%s: %d to %q", s.URL, home.StatusCode, home.Header.Get("Location"))
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
		assert.That(t, a.StatusCode == http.StatusOK && a.Header.Get("X-Content-Type-Options") == "nosniff", "%s: %d %v", name, a.StatusCode, a.Header)
		policy := a.Header.Values("Content-Security-Policy")
		assert.That(t, len(policy) == 1 && policy[0] == wantPolicy, "%s: policy %q, want %q", name, policy, wantPolicy)
		assert.Equal(t, get(t, address, "If-None-Match", a.Header.Get("ETag")).StatusCode, http.StatusNotModified, "%s: status for its own ETag", name)
		return nil
	})
	assert.Require(t, err == nil && files >= 10, "%d files, %v", files, err)
}

func TestPlayground_OffersNothingToOtherOriginsAndOnlyInTheDemo(t *testing.T) {
	lent := pages.Playground{Demo: &pages.Demo{CustomerJWT: "a.b.c"}}
	s := newShop(t, withPlayground(lent), func(p *server.Parts) { p.CORSOrigins = []string{"*"} })
	a := get(t, s.URL+"/playground/demo.json", "Origin", "https://elsewhere.example.com")
	assert.That(t, a.StatusCode == http.StatusOK && a.Header.Get("Cache-Control") == "no-store", "%d, Cache-Control %q", a.StatusCode, a.Header.Get("Cache-Control"))
	assert.Equal(t, a.Header.Get("Access-Control-Allow-Origin"), "", "origin whose pages may read it")
	bare := openShop(t, embeddedRedis(t), withPlayground(pages.Playground{}))
	bare.guest(t).refused(404, "not_found", "GET", "/playground/demo.json", "")
	bare.guest(t).refused(404, "not_found", "PATCH", "/playground/products/1", `{"price":1}`)
	bare.guest(t).refused(404, "not_found", "POST", "/playground/subscriptions", `{}`)
}

func withPlayground(p pages.Playground) func(*server.Parts) {
	return func(parts *server.Parts) { parts.Playground = &p }
}

// get returns a response without its body, also a redirect. Headers are name, value, …
func get(t *testing.T, address string, headers ...string) *http.Response {
	t.Helper()
	r := assert.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, _ := exchange(t, r)
	return response
}

// pageText is a text in one language: a sentence, or its plural forms.
type pageText struct {
	Area     string            `json:"area"` // the file in js/texts
	Key      string            `json:"key"`
	Language string            `json:"language"`
	Forms    map[string]string `json:"forms"` // "" for a sentence
}

// Every text is there in both languages, once, with the same values in it, and used.
func TestPlaygroundTexts_AreCompleteAndUsed(t *testing.T) {
	p, _ := openStore(t)
	all := evaluate[[]pageText](p, `Promise.all(["page", "hero", "shop", "scenarios", "log", "merchant"].map(async (area) => {
		const { [area]: texts } = await import("./playground/js/texts/" + area + ".js");
		return Object.entries(texts).flatMap(([language, byKey]) => Object.entries(byKey).map(([key, text]) =>
			({ area, key, language, forms: typeof text === "string" ? { "": text } : text })));
	})).then((areas) => areas.flat())`)
	texts := map[string]map[string]pageText{"en": {}, "ar": {}}
	for _, text := range all {
		other, twice := texts[text.Language][text.Key]
		assert.That(t, !twice, "%s is in %s and %s", text.Key, other.Area, text.Area)
		texts[text.Language][text.Key] = text
	}
	uses := usesOfTexts(t)
	for key, english := range texts["en"] {
		arabic, translated := texts["ar"][key]
		assert.That(t, translated && arabic.Area == english.Area, "%s: %s is not in Arabic", english.Area, key)
		assert.Equal(t, arabic.values(), english.values(), "values of %s in Arabic, compared with English", key)
		assert.That(t, slices.ContainsFunc(uses, func(use *regexp.Regexp) bool { return use.MatchString(key) }), "%s: %s is not used", english.Area, key)
	}
	for key, arabic := range texts["ar"] {
		_, found := texts["en"][key]
		assert.That(t, found, "%s: %s is not in English", arabic.Area, key)
	}
}

var valueInText = regexp.MustCompile(`\{\w+\}`)

// values are the {names} of values in the text. A plural form may leave out its number.
func (text pageText) values() []string {
	found := valueInText.FindAllString(text.Forms[""]+text.Forms["other"], -1)
	slices.Sort(found)
	return slices.Compact(found)
}

var (
	quotedText   = regexp.MustCompile(`"([\w.]+)"|\]\.(\w+)`)
	textTemplate = regexp.MustCompile("`([^`\\s]*\\$\\{[^`\\s]*)`")
	insertedPart = regexp.MustCompile(`\$\{[^}]*\}`)
	namedPart    = regexp.MustCompile(`\bname: "(\w+)"`)
)

// usesOfTexts returns patterns of the keys that the page's files have in quotes or as templates,
// and of those that the player makes of a play's name and its steps'.
func usesOfTexts(t *testing.T) (uses []*regexp.Regexp) {
	t.Helper()
	use := func(pattern string) { uses = append(uses, regexp.MustCompile("^(?:"+pattern+")$")) }
	assert.NoError(t, fs.WalkDir(docs.Playground, "playground", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".js", ".html"}, path.Ext(file)) || strings.Contains(file, "/texts/") {
			return err
		}
		source, err := docs.Playground.ReadFile(file)
		if err != nil {
			return err
		}
		for _, match := range quotedText.FindAllSubmatch(source, -1) {
			use(regexp.QuoteMeta(string(match[1]) + string(match[2])))
		}
		if strings.Contains(file, "/plays/") {
			names := namedPart.FindAllSubmatch(source, -1)
			for _, step := range names[1:] {
				use(string(names[0][1]) + "_(title|" + string(step[1]) + ")")
			}
			return nil
		}
		for _, match := range textTemplate.FindAllSubmatch(source, -1) {
			if fixed := insertedPart.ReplaceAllString(string(match[1]), ""); len(fixed) > 1 {
				use(strings.ReplaceAll(regexp.QuoteMeta(insertedPart.ReplaceAllString(string(match[1]), "\x00")), "\x00", `\w+`))
			}
		}
		return nil
	}))
	return uses
}
