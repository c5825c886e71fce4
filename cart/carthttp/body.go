package carthttp

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

	"commerce/auth/locale"
	"commerce/auth/problem"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxBody  = 64 << 10 // bytes of a request body
	maxDepth = 32       // of nesting in it
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
		return nil, nil, malformed(err, "", textNotJSON)
	}
	if len(body) > maxBody {
		return nil, nil, problem.New(problem.BodyTooLarge, "", textTooLarge, maxBody)
	}
	members, err := parseObject(body)
	return body, members, err
}

func malformed(cause error, member string, text locale.Text, args ...any) *problem.Error {
	return problem.New(problem.MalformedJSON, member, text, args...).Because(cause)
}

// unreadable says what checkJSON found, so that a developer knows what to mend.
func unreadable(err error) *problem.Error {
	syntax, _ := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, errTooDeep):
		return malformed(err, "", textTooDeep, maxDepth)
	case errors.Is(err, errTrailing):
		return malformed(err, "", textTrailing)
	case errors.Is(err, jsontext.ErrDuplicateName) && syntax != nil:
		member := strings.Join(slices.Collect(syntax.JSONPointer.Tokens()), ".")
		return malformed(err, member, textTwice, member)
	}
	return malformed(err, "", textNotJSON)
}

// wantJSON refuses what is not JSON in UTF-8. A body without a type is taken for it.
func wantJSON(h http.Header) error {
	refusal := problem.New(problem.UnsupportedMediaType, "Content-Type", textNeedsJSON)
	if encoding := h.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return problem.New(problem.UnsupportedMediaType, "Content-Encoding", textNeedsJSON)
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
		return nil, malformed(nil, "", textNotObject)
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
		locale.En: "The request body goes on after its JSON object.",
		locale.Ar: "يستمر محتوى الطلب بعد نهاية كائن JSON.",
	}
	textTwice = locale.Text{
		locale.En: "%s is given more than once.",
		locale.Ar: "العضو %s معطى أكثر من مرة.",
	}
	textTooLarge = locale.Text{
		locale.En: "The request body is larger than %d bytes.",
		locale.Ar: "محتوى الطلب أكبر من %d بايت.",
	}
	textNeedsJSON = locale.Text{
		locale.En: "Send the request body as application/json in UTF-8.",
		locale.Ar: "أرسل محتوى الطلب بصيغة application/json وبترميز UTF-8.",
	}
)
