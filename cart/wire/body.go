package wire

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

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

const (
	maxBody      = 64 << 10 // of a request body, in bytes
	maxCombining = 4 << 10  // bytes of it that are letters with combining characters: normal forms of more take milliseconds
	maxDepth     = 32       // of its nesting
)

// Object is a JSON object by member name, with values as they were sent.
type Object map[string]jsontext.Value

// Has reports whether a member was given; null counts as not given.
func (o Object) Has(name string) bool {
	v, ok := o[name]
	return ok && v.Kind() != 'n'
}

// Unquote returns the text of a value; "" and false if it is no text.
func Unquote(v jsontext.Value) (string, bool) {
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err == nil
}

// ReadBody reads a request's JSON object and returns its bytes too. It refuses that on which two
// parsers could disagree: duplicate members, data after the object, and invalid UTF-8. A body that
// does not arrive in time is an http.ErrAbortHandler.
func ReadBody(r *http.Request) ([]byte, Object, error) {
	if err := wantJSON(r.Header); err != nil {
		return nil, nil, err
	}
	if r.ContentLength > maxBody {
		return nil, nil, errTooLarge // a client that waits for 100 Continue need not send it
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, nil, fmt.Errorf("read body: %w: %w", err, http.ErrAbortHandler)
	}
	if refusal, ok := errors.AsType[*problem.Error](err); ok {
		return nil, nil, refusal // the server is too busy for a body that has just arrived
	}
	if err != nil {
		return nil, nil, malformed(err, "", textNotJSON)
	}
	if len(body) > maxBody {
		return nil, nil, errTooLarge
	}
	if combines(body) {
		return nil, nil, problem.New(problem.BodyTooLarge, "", textCombining, maxCombining)
	}
	members, err := ParseObject(body)
	return body, members, err
}

// combines reports whether more than maxCombining bytes of a body are letters with characters that may combine with
// them. Escaped characters do not count: they fill a body before they take long.
func combines(body []byte) bool {
	for combining := 0; len(body) > maxCombining-combining; {
		body = body[norm.NFC.QuickSpan(body):]
		n := norm.NFC.NextBoundary(body, true)
		if n <= 0 {
			break
		}
		if combining += n; combining > maxCombining {
			return true
		}
		body = body[n:]
	}
	return false
}

func malformed(cause error, member string, text locale.Text, args ...any) *problem.Error {
	return problem.New(problem.MalformedJSON, member, text, args...).Because(cause)
}

// unreadable turns an error of checkJSON into a message that says what to fix.
func unreadable(err error) *problem.Error {
	syntax, _ := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, errTooDeep):
		return malformed(err, "", textTooDeep, maxDepth)
	case errors.Is(err, errTrailing):
		return malformed(err, "", textTrailing)
	case errors.Is(err, jsontext.ErrDuplicateName) && syntax != nil:
		member := problem.Excerpt(strings.Join(slices.Collect(syntax.JSONPointer.Tokens()), "."))
		return malformed(err, member, textTwice, member)
	}
	return malformed(err, "", textNotJSON)
}

// wantJSON refuses other types than JSON in UTF-8. A body without a type counts as JSON.
func wantJSON(h http.Header) error {
	if encoding := h.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return problem.New(problem.UnsupportedMediaType, "Content-Encoding", textCompressed)
	}
	if types := h.Values("Content-Type"); len(types) > 1 || len(types) == 1 && !jsonInUTF8(types[0]) {
		return problem.New(problem.UnsupportedMediaType, "Content-Type", textNeedsJSON)
	}
	return nil
}

func jsonInUTF8(contentType string) bool {
	if contentType == "application/json" { // what most clients send
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset := strings.ToLower(params["charset"])
	return err == nil && media == "application/json" && (charset == "" || charset == "utf-8" || charset == "utf8")
}

var (
	errTooDeep  = errors.New("nested too deep")
	errTrailing = errors.New("bytes after the object")
	errTooLarge = problem.New(problem.BodyTooLarge, "", textTooLarge, maxBody)
)

// ParseObject reads a JSON object. It is as strict as ReadBody.
func ParseObject(body []byte) (Object, error) {
	if err := checkJSON(body); err != nil {
		return nil, unreadable(err)
	}
	if jsontext.Value(body).Kind() != '{' {
		return nil, malformed(nil, "", textNotObject)
	}
	return Members(body), nil
}

// Members reads a JSON object that is a part of what ParseObject has read, and checks nothing again.
func Members(object []byte) Object {
	d := checked(object)
	const least = len(`"a":1234567890,`) // bytes of most members
	members := make(Object, min(len(object)/least, 100))
	_, _ = d.ReadToken()
	for d.PeekKind() != '}' {
		name, _ := d.ReadToken()
		key := name.String()
		members[key] = next(d, object)
	}
	return members
}

// Elements reads a JSON array, like Members.
func Elements(array []byte) (elements []jsontext.Value) {
	d := checked(array)
	_, _ = d.ReadToken()
	for d.PeekKind() != ']' {
		elements = append(elements, next(d, array))
	}
	return elements
}

// next reads a value of the JSON that d decodes. It is a part of it, not a copy.
func next(d *jsontext.Decoder, json []byte) jsontext.Value {
	value, _ := d.ReadValue()
	end := int(d.InputOffset())
	return json[end-len(value) : end : end]
}

// checked returns a decoder of JSON that checkJSON has read. It reads a Buffer without a copy.
func checked(json []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(json), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// checkJSON reads the whole body once, so that reading it again cannot fail.
func checkJSON(body []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	var known [maxDepth + 1]names
	for {
		token, err := d.ReadToken()
		if err != nil {
			return err
		}
		depth := d.StackDepth()
		if depth > maxDepth {
			return errTooDeep
		}
		if depth == 0 {
			break
		}
		switch in, length := d.StackIndex(depth); {
		case token.Kind() == '{':
			known[depth].reset()
		case in == '{' && length%2 == 1 && !known[depth].add(token.String()):
			return &jsontext.SyntacticError{JSONPointer: d.StackPointer(), Err: jsontext.ErrDuplicateName}
		}
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return errTrailing
	}
	return nil
}

// names are the members of one object after the other. The decoder can check them too, but makes a set for each
// object, which takes most of the time that a body of many objects takes.
type names map[string]struct{}

func (n *names) reset() {
	if *n == nil || len(*n) > 128 { // a large set takes long to clear, also for small objects
		*n = names{}
	}
	clear(*n)
}

// add reports whether a name is a new one.
func (n names) add(name string) bool {
	before := len(n)
	n[name] = struct{}{}
	return len(n) > before
}

var (
	textNotJSON = locale.Text{
		locale.En: "The request body is not valid JSON.",
		locale.Ar: "محتوى الطلب ليس JSON صالحًا.",
	}
	textNotObject = locale.Text{
		locale.En: "The request body must be a JSON object.",
		locale.Ar: "يجب أن يكون محتوى الطلب كائن JSON.",
	}
	textTooDeep = locale.Text{
		locale.En: "The request body is nested more than %d levels deep.",
		locale.Ar: "محتوى الطلب متداخل لأكثر من %d مستوى.",
	}
	textTrailing = locale.Text{
		locale.En: "The request body has extra data after the JSON object.",
		locale.Ar: "توجد بيانات زائدة بعد كائن JSON في محتوى الطلب.",
	}
	textTwice = locale.Text{
		locale.En: "%s appears more than once.",
		locale.Ar: "تكرّر الحقل %s في محتوى الطلب.",
	}
	textTooLarge = locale.Text{
		locale.En: "The request body is larger than %d bytes.",
		locale.Ar: "محتوى الطلب أكبر من %d بايت.",
	}
	textCombining = locale.Text{
		locale.En: "More than %d bytes of the request body are letters with combining characters. Send text in Unicode NFC.",
		locale.Ar: "في محتوى الطلب أكثر من %d بايت من الحروف المتبوعة بعلامات منفصلة. أرسل النصوص بصيغة Unicode NFC.",
	}
	textCompressed = locale.Text{
		locale.En: "Send the request body without compression.",
		locale.Ar: "أرسل محتوى الطلب دون ضغط.",
	}
	textNeedsJSON = locale.Text{
		locale.En: "Send the request body as application/json in UTF-8.",
		locale.Ar: "أرسل محتوى الطلب بصيغة application/json وبترميز UTF-8.",
	}
)
