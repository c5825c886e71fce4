package cart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
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
// A body that does not come in time is an http.ErrAbortHandler.
func readBody(r *http.Request) ([]byte, object, error) {
	if err := wantJSON(r.Header); err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// A slow client's JSON is not malformed: it never came.
		return nil, nil, fmt.Errorf("read body: %w: %w", err, http.ErrAbortHandler)
	}
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

// text reads a member that a person wrote, in its normal form. "" for text that
// counts as not given.
func text(v jsontext.Value, name string) (string, *Error) {
	if v.Kind() != '"' {
		return "", refuse(CodeValidationFailed, name, sayText, name)
	}
	b, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return "", refuse(CodeValidationFailed, name, sayText, name)
	}
	s := normalText(string(b))
	if strings.ContainsFunc(s, notText) {
		return "", refuse(CodeValidationFailed, name, sayPlainText, name)
	}
	return s, nil
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
	n, err = o.whole(first)
	if !o.has(second) {
		return n, first, true, err
	}
	other, otherErr := o.whole(second)
	if err == nil && otherErr == nil && other != n {
		return 0, second, true, refuse(CodeValidationFailed, second, sayDisagree, first, second)
	}
	return n, first, true, together(err, otherErr)
}

// addition reads the body of POST /cart/add. Every member at fault is named.
func (o object) addition() (Addition, error) {
	a := Addition{}
	var badID, badQuantity, badPlan, badFields, badNotice *Error
	a.ProductID, badID = o.productID()
	a.Quantity, a.quantityMember, badQuantity = o.addedQuantity()
	a.PlanID, badPlan = o.plan()
	a.Fields, badFields = o.fields()
	a.Notice, badNotice = o.notice()
	if err := together(badID, badQuantity, badPlan, badFields, badNotice); err != nil {
		return Addition{}, err
	}
	return a, nil
}

func (o object) productID() (int64, *Error) {
	const name = "product_id"
	if !o.has(name) {
		return 0, refuse(CodeValidationFailed, name, sayRequired, name)
	}
	return o.whole(name)
}

// addedQuantity is 1 when none is given.
func (o object) addedQuantity() (n int64, name string, err *Error) {
	n, name, given, err := o.quantity("qty", "quantity")
	switch {
	case err != nil:
		return 0, name, err
	case !given:
		return 1, name, nil
	case n < 1:
		return 0, name, refuse(CodeValidationFailed, name, sayAtLeastOne, name)
	}
	return n, name, nil
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

// fields reads the answers by the keys that the client sent. An answer that counts as
// not given is "". Whether a key is a field is judged later.
func (o object) fields() (map[string]string, *Error) {
	const name = "fields"
	if !o.has(name) {
		return nil, nil
	}
	if o[name].Kind() != '{' {
		return nil, refuse(CodeValidationFailed, name, sayObject, name)
	}
	given, _ := parseObject(o[name])
	fields := make(map[string]string, len(given))
	var refusals []*Error
	for _, key := range sortedKeys(given) {
		fields[key] = ""
		if given.has(key) {
			value, err := text(given[key], name+"."+key)
			fields[key] = value
			if err != nil {
				refusals = append(refusals, err)
			}
		}
	}
	return fields, together(refusals...)
}

func (o object) notice() (string, *Error) {
	const name = "notice"
	if !o.has(name) {
		return "", nil
	}
	s, err := text(o[name], name)
	if err == nil && utf8.RuneCountInString(s) > maxNotice {
		err = refuse(CodeValidationFailed, name, sayTextTooLong, name, maxNotice)
	}
	return s, err
}

// couponCode reads the body of POST /cart/coupon: the code in its normal form, and
// the name by which the client sent it.
func (o object) couponCode() (code, name string, err error) {
	name, other := "coupon", "code"
	if !o.has(name) && o.has(other) {
		name, other = other, name
	}
	code, refusal := o.code(name)
	if o.has(other) {
		same, otherRefusal := o.code(other)
		if refusal == nil && otherRefusal == nil && same != code {
			otherRefusal = refuse(CodeValidationFailed, other, sayDisagree, name, other)
		}
		refusal = together(refusal, otherRefusal)
	}
	if refusal != nil {
		return "", name, refusal
	}
	return code, name, nil
}

func (o object) code(name string) (string, *Error) {
	if !o.has(name) {
		return "", refuse(CodeValidationFailed, name, sayRequired, name)
	}
	given, err := text(o[name], name)
	code := NormalCouponCode(given)
	switch {
	case err != nil:
		return "", err
	case code == "":
		return "", refuse(CodeValidationFailed, name, sayRequired, name)
	case utf8.RuneCountInString(code) > maxCouponCode:
		return "", refuse(CodeValidationFailed, name, sayTextTooLong, name, maxCouponCode)
	}
	return code, nil
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
