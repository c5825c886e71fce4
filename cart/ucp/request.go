package ucp

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/price"
	"commerce/cart/ucp/agent"
	"commerce/cart/wire"
)

// request is what an agent asks for. Members that are not used are checked, and not kept.
type request struct {
	agent.Replacement
	codes    []jsontext.Value // of discounts as they were sent; nil for none
	warnings []message        // about what was not applied, also errors about single elements

	release *release
	faults  *problem.Error // what is wrong with the form; members are paths
}

const (
	maxElements = cart.MaxLines
	maxCodes    = 50
	maxQuantity = 1<<53 - 1 // beyond which JSON numbers are not exact everywhere

	quantities = "integer, minimum 1, below 2^53"
	domainName = "string, a unique name in reverse-domain form, such as com.example.gold"
)

// read reads the cart that an agent sent, by the schemas of the protocol. null counts as not given.
func (c *call) read() request {
	r := request{release: c.release}
	if c.cart == nil && c.operation == get {
		return r
	}
	r.texts(c.cart, "$", "buyer", "first_name", "last_name", "email", "phone_number")
	context := r.texts(c.cart, "$", "context", c.release.context...)
	r.names(context, "$.context", "eligibility")
	if c.release.extended {
		r.preferred(context)
	}
	r.country(context)
	if claims := context["eligibility"]; claims.Kind() == '[' && len(wire.Elements(claims)) > 0 {
		r.warnings = append(r.warnings, message{code: "eligibility_not_accepted", path: "$.context.eligibility", content: textNotEligible.With()})
	}
	signals := r.texts(c.cart, "$", "signals", "dev.ucp.buyer_ip", "dev.ucp.user_agent")
	for _, name := range slices.Sorted(maps.Keys(signals)) {
		if r.faults.Full() {
			break
		}
		if !c.release.domain.MatchString(name) {
			r.fault(memberPath("$.signals", name), domainName)
		}
	}
	attribution := r.object(c.cart, "$", "attribution")
	for _, name := range slices.Sorted(maps.Keys(attribution)) {
		if r.faults.Full() {
			break
		}
		r.text(attribution, "$.attribution", name)
	}
	if language, ok := wire.Unquote(context["language"]); ok {
		c.language = locale.Match(language, c.language)
	}
	if id, ok := r.text(c.cart, "$", "id"); ok && id != c.id && c.operation != create {
		r.fault("$.id", "the id that the request names")
	}
	r.elements(c.cart, c.operation != cancel)
	if c.discounts() {
		r.discounts(c.cart)
	}
	return r
}

// country reads where the buyer is. What is no country is a hint that is ignored.
func (r *request) country(context wire.Object) {
	if text, ok := wire.Unquote(context["address_country"]); ok {
		if r.Country = cart.ParseCountry(text); r.Country == "" {
			r.warnings = append(r.warnings, message{code: "address_country_unknown", path: "$.context.address_country", content: textNoCountry.With()})
		}
	}
}

// fault refuses a member. want is what JSON Schema calls the value that it should have.
func (r *request) fault(path, want string) { r.refuse(path, textForm, want) }

// missing refuses that a member is not given. want is as for fault.
func (r *request) missing(path, want string) { r.refuse(path, textMissing, want) }

func (r *request) refuse(path string, text locale.Text, want string) {
	if !r.faults.Full() {
		r.faults = problem.Join(r.faults, problem.New(problem.ValidationFailed, path, text, want))
	}
}

func (r *request) messages() []message {
	all := make([]message, len(r.faults.Faults))
	for i, f := range r.faults.Faults {
		all[i] = message{code: problem.ValidationFailed, severity: recoverable, path: f.Member, content: f.Sentence}
	}
	return all
}

// errors returns those of the warnings that are errors, for a request that made no cart.
func (r *request) errors() (all []message) {
	for _, m := range r.warnings {
		if m.severity != "" {
			m.severity = unrecoverable
			all = append(all, m)
		}
	}
	return all
}

// object reads a member that is an object; nil if it is not given.
func (r *request) object(o wire.Object, path, name string) wire.Object {
	if !o.Has(name) {
		return nil
	}
	if o[name].Kind() != '{' {
		r.fault(path+"."+name, "object")
		return nil
	}
	return wire.Members(o[name])
}

// texts reads a member that is an object, whose members with these names are texts.
func (r *request) texts(o wire.Object, path, name string, members ...string) wire.Object {
	inner := r.object(o, path, name)
	for _, member := range members {
		r.text(inner, path+"."+name, member)
	}
	return inner
}

// text reads a member that is a text. It reports whether it is given and is one.
func (r *request) text(o wire.Object, path, name string) (string, bool) {
	if !o.Has(name) {
		return "", false
	}
	s, ok := wire.Unquote(o[name])
	if !ok {
		r.fault(memberPath(path, name), "string")
	}
	return s, ok
}

// list reads a member that is a list of at most so many elements. It reports whether it is given and is one.
func (r *request) list(o wire.Object, path, name string, most int) (elements []jsontext.Value, ok bool) {
	if !o.Has(name) {
		return nil, false
	}
	if o[name].Kind() != '[' {
		r.fault(path+"."+name, "array")
		return nil, false
	}
	if elements = wire.Elements(o[name]); len(elements) > most {
		r.fault(path+"."+name, fmt.Sprintf("array, maxItems %d", most))
		return nil, false
	}
	return elements, true
}

// names reads a member that is a list of different names in reverse-domain form.
func (r *request) names(o wire.Object, path, name string) {
	seen := map[string]bool{}
	elements, _ := r.list(o, path, name, 100)
	for i, v := range elements {
		text, _ := wire.Unquote(v)
		if !r.release.domain.MatchString(text) || seen[text] {
			r.fault(fmt.Sprintf("%s.%s[%d]", path, name, i), domainName)
		}
		seen[text] = true
	}
}

// preferred checks the payment handlers that the buyer prefers, which are not used.
func (r *request) preferred(context wire.Object) {
	handlers, _ := r.list(context, "$.context", "payment", 100)
	for i, v := range handlers {
		path := fmt.Sprintf("$.context.payment[%d]", i)
		if v.Kind() != '{' {
			r.fault(path, "object")
			continue
		}
		handler := wire.Members(v)
		if name, _ := wire.Unquote(handler["handler"]); !r.release.domain.MatchString(name) {
			r.fault(path+".handler", domainName)
		}
		types, _ := r.list(handler, path, "types", 100)
		for j, t := range types {
			if _, ok := wire.Unquote(t); !ok {
				r.fault(fmt.Sprintf("%s.types[%d]", path, j), "string")
			}
		}
	}
}

func (r *request) elements(o wire.Object, required bool) {
	elements, ok := r.list(o, "$", "line_items", maxElements)
	if required && !o.Has("line_items") {
		r.missing("$.line_items", "array")
	}
	if !ok {
		return
	}
	r.Elements = make([]agent.Element, len(elements))
	for i, v := range elements {
		if v.Kind() != '{' {
			r.fault(itemPath(i), "object")
			continue
		}
		r.Elements[i] = r.element(wire.Members(v), itemPath(i), required)
		if r.Elements[i].Inert {
			r.warnings = append(r.warnings, message{code: "quantity_unit_mismatch", severity: recoverable, path: itemPath(i) + ".item.quantity_unit", content: textUnit.With()})
		}
	}
}

// element reads an element of line_items. Only its ID matters if its item and quantity are not required.
func (r *request) element(o wire.Object, path string, required bool) (e agent.Element) {
	e.ID, _ = r.text(o, path, "id")
	r.text(o, path, "parent_id")
	if !required {
		return e
	}
	if item := r.object(o, path, "item"); item != nil {
		id, _ := r.text(item, path+".item", "id")
		if e.Product, e.Plan, _ = agent.ParseItem(id); !item.Has("id") {
			r.missing(path+".item.id", "string")
		}
		e.Inert = r.release.extended && r.otherUnit(item, path+".item")
	} else if !o.Has("item") {
		r.missing(path+".item", "object")
	}
	var whole bool
	if e.Quantity, whole = wire.WholeNumber(o["quantity"]); !o.Has("quantity") {
		r.missing(path+".quantity", quantities)
	} else if !whole || e.Quantity < 1 || e.Quantity > maxQuantity {
		r.fault(path+".quantity", quantities)
	}
	return e
}

// piece is the unit of all quantities (UN/CEFACT, Recommendation 20).
const piece = "C62"

// otherUnit reads the unit in which the quantity of an item is. It reports whether that is another one than the piece.
func (r *request) otherUnit(item wire.Object, path string) bool {
	unit := r.object(item, path, "quantity_unit")
	if unit == nil {
		return false
	}
	path += ".quantity_unit"
	for _, name := range []string{"unit", "display_text"} {
		if r.text(unit, path, name); !unit.Has(name) {
			r.missing(path+"."+name, "string")
		}
	}
	r.whole(unit, path, "increment", 1, maxQuantity)
	name, _ := wire.Unquote(unit["unit"])
	most := int64(15)
	if name == piece {
		most = 0
	}
	r.whole(unit, path, "scale", 0, most)
	return name != piece
}

// whole reads a member that is a whole number within bounds.
func (r *request) whole(o wire.Object, path, name string, least, most int64) {
	if n, whole := wire.WholeNumber(o[name]); o.Has(name) && (!whole || n < least || n > most) {
		r.fault(path+"."+name, fmt.Sprintf("integer, minimum %d, maximum %d", least, most))
	}
}

// discounts reads the codes of discounts. A text that no code can be is refused by itself.
func (r *request) discounts(o wire.Object) {
	codes, given := r.list(r.object(o, "$", "discounts"), "$.discounts", "codes", maxCodes)
	if !given {
		return
	}
	r.codes, r.Codes = append([]jsontext.Value{}, codes...), []agent.Code{}
	for i, v := range codes {
		code, ok := wire.Unquote(v)
		if !ok {
			r.fault(codePath(i), "string")
			continue
		}
		key := cart.CouponKey(code)
		if n := utf8.RuneCountInString(key); n == 0 || n > cart.MaxCouponCode || strings.ContainsFunc(key, unicode.IsControl) {
			r.warnings = append(r.warnings, message{code: "discount_code_invalid", path: codePath(i), content: price.TextNoCoupon.With()})
			continue
		}
		r.Codes = append(r.Codes, agent.Code{Text: code, At: i})
	}
}

// placeOf is the place of the cart's i-th code in the codes that the response shows: those of the request, or the cart's.
func (r *request) placeOf(i int, code string) int {
	for _, sent := range r.Codes {
		if cart.CouponKey(sent.Text) == cart.CouponKey(code) {
			return sent.At
		}
	}
	return i
}

func memberPath(path, name string) string {
	if name = problem.Excerpt(name); plainName.MatchString(name) {
		return path + "." + name
	}
	return path + "['" + strings.ReplaceAll(strings.ReplaceAll(name, `\`, `\\`), `'`, `\'`) + "']"
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var (
	// textForm and textMissing have a word of JSON Schema, which is the same in all languages.
	textForm = locale.Text{
		locale.En: "This value is not valid. Expected: %s.",
		locale.Ar: "هذه القيمة غير صالحة. المتوقع: %s.",
	}
	textMissing = locale.Text{
		locale.En: "This value is required. Expected: %s.",
		locale.Ar: "هذه القيمة مطلوبة. المتوقع: %s.",
	}
	textUnit = locale.Text{
		locale.En: "This shop sells by the piece (C62), so nothing was done with this item. Send its quantity as a number of pieces.",
		locale.Ar: "يبيع هذا المتجر بالقطعة (C62)، لذلك لم يُنفّذ شيء لهذا المنتج. أرسل الكمية كعدد من القطع.",
	}
	textNotEligible = locale.Text{
		locale.En: "This shop has no offers for such claims, so they were ignored.",
		locale.Ar: "لا يقدّم هذا المتجر عروضًا لمثل هذه الحالات، لذلك تم تجاهلها.",
	}
	textNoCountry = locale.Text{
		locale.En: "This is no country of ISO 3166-1, such as DE, so it was ignored.",
		locale.Ar: "هذا ليس رمز دولة وفق ISO 3166-1 مثل DE، لذلك تم تجاهله.",
	}
)
