package cart

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxBody   = 64 << 10 // bytes of a request body
	maxDepth  = 32       // of nesting in it
	maxNotice = 500      // characters
)

// object is a JSON object as it came, member by member.
type object map[string]jsontext.Value

// readBody reads a request's JSON object. It is strict where two readers could
// disagree: duplicate members, bytes after the object and invalid UTF-8 are refused.
func readBody(r *http.Request) ([]byte, object, error) {
	if err := wantJSON(r.Header); err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, nil, malformed(err, "", sayNotJSON)
	}
	if len(body) > maxBody {
		return nil, nil, refuse(CodeBodyTooLarge, "", sayTooLarge, maxBody)
	}
	members, err := parseObject(body)
	return body, members, err
}

func malformed(cause error, member string, p phrase, args ...any) *Error {
	e := refuse(CodeMalformedJSON, member, p, args...)
	e.cause = cause
	return e
}

// unreadable says what checkJSON found, so that a developer knows what to mend.
func unreadable(err error) *Error {
	syntax, _ := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, errTooDeep):
		return malformed(err, "", sayTooDeep, maxDepth)
	case errors.Is(err, errTrailing):
		return malformed(err, "", sayTrailing)
	case errors.Is(err, jsontext.ErrDuplicateName) && syntax != nil:
		member := strings.Join(slices.Collect(syntax.JSONPointer.Tokens()), ".")
		return malformed(err, member, sayTwice, member)
	}
	return malformed(err, "", sayNotJSON)
}

// wantJSON refuses what is not JSON in UTF-8. A body without a type is taken for it.
func wantJSON(h http.Header) error {
	refusal := refuse(CodeUnsupportedMediaType, "Content-Type", sayNeedsJSON)
	if encoding := h.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return refuse(CodeUnsupportedMediaType, "Content-Encoding", sayNeedsJSON)
	}
	switch types := h.Values("Content-Type"); len(types) {
	case 0:
		return nil
	case 1:
		media, params, err := mime.ParseMediaType(types[0])
		charset := params["charset"]
		if err != nil || media != "application/json" || (charset != "" && !strings.EqualFold(charset, "utf-8")) {
			return refusal
		}
		return nil
	}
	return refusal
}

var (
	errTooDeep  = errors.New("nested too deep")
	errTrailing = errors.New("bytes after the object")
)

func parseObject(body []byte) (object, error) {
	if err := checkJSON(body); err != nil {
		return nil, unreadable(err)
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if d.PeekKind() != '{' {
		return nil, malformed(nil, "", sayNotObject)
	}
	members := object{}
	_, _ = d.ReadToken() // all of it was read once: no error can follow
	for d.PeekKind() != '}' {
		name, _ := d.ReadToken()
		key := name.String()
		value, _ := d.ReadValue()
		members[key] = value.Clone()
	}
	return members, nil
}

// checkJSON reads a whole body once, so that what follows need not look for errors.
func checkJSON(body []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		if d.StackDepth() > maxDepth {
			return errTooDeep
		}
		if d.StackDepth() == 0 {
			break
		}
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return errTrailing
	}
	return nil
}

// has reports whether a member was given; null counts as not given.
func (o object) has(name string) bool {
	v, ok := o[name]
	return ok && v.Kind() != 'n'
}

// whole reads a whole number, as wholeNumber does.
func (o object) whole(name string) (int64, *Error) {
	n, ok := wholeNumber(o[name])
	if !ok {
		return 0, refuse(CodeValidationFailed, name, sayWholeNumber, name)
	}
	return n, nil
}

// text reads a member that a person wrote.
func text(v jsontext.Value, name string) (string, *Error) {
	if v.Kind() != '"' {
		return "", refuse(CodeValidationFailed, name, sayText, name)
	}
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return "", refuse(CodeValidationFailed, name, sayText, name)
	}
	if bytes.ContainsFunc(b, notText) {
		return "", refuse(CodeValidationFailed, name, sayPlainText, name)
	}
	return string(b), nil
}

func notText(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
}

// quantity reads the quantity by either of its names and says which one was used.
func (o object) quantity(first, second string) (n int64, name string, given bool, err *Error) {
	if o.has(second) && !o.has(first) {
		first, second = second, first
	}
	if !o.has(first) {
		return 0, first, false, nil
	}
	if n, err = o.whole(first); err != nil {
		return 0, first, true, err
	}
	if o.has(second) {
		other, err := o.whole(second)
		if err != nil {
			return 0, second, true, err
		}
		if other != n {
			return 0, second, true, refuse(CodeValidationFailed, second, sayDisagree, first, second)
		}
	}
	return n, first, true, nil
}

// addition reads the body of POST /cart/add. Every member at fault is named.
func (o object) addition() (Addition, error) {
	a := Addition{Quantity: 1, quantityMember: "qty"}
	var faults []fault
	note := func(err *Error) {
		if err != nil {
			faults = append(faults, err.faults...)
		}
	}
	if !o.has("product_id") {
		note(refuse(CodeValidationFailed, "product_id", sayRequired, "product_id"))
	} else {
		id, err := o.whole("product_id")
		note(err)
		a.ProductID = id
	}
	n, name, given, err := o.quantity("qty", "quantity")
	note(err)
	a.quantityMember = name
	if given && err == nil {
		if a.Quantity = n; n < 1 {
			note(refuse(CodeValidationFailed, name, sayAtLeastOne, name))
		}
	}
	plan, err := o.plan()
	note(err)
	a.PlanID = plan
	a.Fields, err = o.fields()
	note(err)
	a.Notice, err = o.notice()
	note(err)
	if faults != nil {
		return Addition{}, &Error{code: CodeValidationFailed, faults: faults}
	}
	return a, nil
}

// plan reads subscription_plan: an id, or an object with one. nil when not given.
func (o object) plan() (*int64, *Error) {
	const name = "subscription_plan"
	if !o.has(name) {
		return nil, nil
	}
	id := o[name]
	if id.Kind() == '{' {
		inner, _ := parseObject(id)
		id = inner["id"]
	}
	n, ok := wholeNumber(id)
	if !ok {
		return nil, refuse(CodeValidationFailed, name, sayPlanShape)
	}
	return &n, nil
}

func (o object) fields() (map[string]string, *Error) {
	if !o.has("fields") {
		return nil, nil
	}
	if o["fields"].Kind() != '{' {
		return nil, refuse(CodeValidationFailed, "fields", sayObject, "fields")
	}
	given, _ := parseObject(o["fields"])
	fields := make(map[string]string, len(given))
	var faults []fault
	for key, value := range given {
		if value.Kind() == 'n' {
			value = jsontext.Value(`""`) // no answer; whether it is a field is judged later
		}
		s, err := text(value, "fields."+key)
		if err != nil {
			faults = append(faults, err.faults...)
		}
		fields[key] = s
	}
	if faults != nil {
		return nil, &Error{code: CodeValidationFailed, faults: faults}
	}
	return fields, nil
}

func (o object) notice() (string, *Error) {
	if !o.has("notice") {
		return "", nil
	}
	s, err := text(o["notice"], "notice")
	if err == nil && utf8.RuneCountInString(s) > maxNotice {
		err = refuse(CodeValidationFailed, "notice", sayTextTooLong, "notice", maxNotice)
	}
	return s, err
}

// couponCode reads the body of POST /cart/coupon.
func (o object) couponCode() (code, name string, err error) {
	name = "coupon"
	switch {
	case !o.has(name) && o.has("code"):
		name = "code"
	case o.has("code") && string(o["code"]) != string(o[name]):
		return "", name, refuse(CodeValidationFailed, "code", sayDisagree, name, "code")
	}
	if !o.has(name) {
		return "", name, refuse(CodeValidationFailed, name, sayRequired, name)
	}
	code, refusal := text(o[name], name)
	switch {
	case refusal != nil:
		return "", name, refusal
	case NormalCouponCode(code) == "":
		return "", name, refuse(CodeValidationFailed, name, sayRequired, name)
	case len(code) > maxCouponCode:
		return "", name, refuse(CodeValidationFailed, name, sayTextTooLong, name, maxCouponCode)
	}
	return code, name, nil
}

// newQuantity reads the body of PATCH /cart/items/<item_id>.
func (o object) newQuantity() (n int64, name string, err error) {
	n, name, given, refusal := o.quantity("quantity", "qty")
	switch {
	case refusal != nil:
		return 0, name, refusal
	case !given:
		return 0, name, refuse(CodeValidationFailed, name, sayRequired, name)
	case n < 0:
		return 0, name, refuse(CodeValidationFailed, name, sayNotNegative, name)
	}
	return n, name, nil
}
