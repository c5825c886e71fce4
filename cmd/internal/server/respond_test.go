package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/wire"
	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
	"commerce/deploy/assert"
)

func shown() wire.Answer {
	return wire.Answer{Language: locale.En, Version: "c1.7", Data: func(w *wire.Writer) {
		w.BeginObject()
		w.Text("name", "a & b")
		w.EndOfView()
		w.Text("expires_at", "later")
		w.EndObject()
	}}
}

func areaOf(t *testing.T, success bool, answer wire.Answer, err error) http.Handler {
	t.Helper()
	h, _ := handlerOf(t, func(c *server.Config) {
		c.Now = func() time.Time { return time.Unix(1_763_632_800, 0) }
		c.CORSOrigins = []string{"https://shop.example.com"}
		c.Areas = only("/shown", func(*gin.Context) (wire.Answer, error) { return answer, err })
		c.Areas[0].Success, c.Areas[0].Vary = success, "Authorization"
	})
	return h
}

func TestRespond_PutsDataIntoTheEnvelopeOfItsArea(t *testing.T) {
	t.Parallel()
	for success, start := range map[bool]string{true: `{"success":true,"message":null`, false: `{"message":null`} {
		w := ask(areaOf(t, success, shown(), nil), "192.0.2.1", "GET", "/shown", "Origin", "https://shop.example.com")
		want := start + `,"data":{"name":"a & b","expires_at":"later"},"api":"merchant-commerce","timestamp":1763632800}`
		assert.That(t, w.Code == 200 && w.Body.String() == want, "got %d %s, want %s", w.Code, w.Body, want)
		h := w.Header()
		wantProtected(t, "/shown", h)
		got := []string{h.Get("Content-Type"), h.Get("Cache-Control"), strings.Join(h["Vary"], "|"), h.Get("ETag")[:6]}
		assert.Equal(t, got, []string{
			"application/json; charset=utf-8", "private, no-cache", "Authorization|Accept-Encoding", `"c1.7-`,
		}, "headers")
	}
}

func TestRespond_IncludesDataInAnError(t *testing.T) {
	t.Parallel()
	mismatch := problem.New(problem.VersionMismatch, "If-Match", locale.Text{locale.En: "It is %d now.", locale.Ar: "هو الآن %d."}, 8)
	w := ask(areaOf(t, true, shown(), mismatch), "192.0.2.1", "GET", "/shown", "X-Request-Id", "the-id", "Accept-Language", "ar")
	const want = `{"success":false,"message":"It is 8 now.","code":"version_mismatch","errors":{"If-Match":["It is 8 now."]},` +
		`"data":{"name":"a & b","expires_at":"later"},"request_id":"the-id","api":"merchant-commerce","timestamp":1763632800}`
	assert.That(t, w.Code == 412 && w.Body.String() == want, "got %d %s,\nwant %s", w.Code, w.Body, want)
	assert.That(t, strings.HasPrefix(w.Header().Get("ETag"), `"c1.7-`) && w.Header().Get("Cache-Control") == "no-store", "headers %v", w.Header())
	bare := ask(areaOf(t, true, wire.Answer{}, mismatch), "192.0.2.1", "GET", "/shown", "X-Request-Id", "the-id", "Accept-Language", "ar")
	assert.That(t, strings.Contains(bare.Body.String(), `"message":"هو الآن 8."`) && strings.Contains(bare.Body.String(), `"data":null`) && bare.Header().Get("ETag") == "", "without data: %s %v", bare.Body, bare.Header())
}

func TestRespond_WritesTheNamesOfMembersAsTheyCame(t *testing.T) {
	t.Parallel()
	text := locale.Text{locale.En: "a <b> & c", locale.Ar: "a <b> & c"}
	err := problem.Join(problem.New(problem.ValidationFailed, "<z>&", text), problem.New(problem.ValidationFailed, "a\xff", text))
	w := ask(areaOf(t, true, wire.Answer{Language: locale.En}, err), "192.0.2.1", "GET", "/shown")
	want := `"errors":{"<z>&":["a <b> & c"],"a` + "\ufffd" + `":["a <b> & c"]},"data":null`
	got := w.Body.String()
	assert.That(t, w.Code == 422 && strings.Contains(got, want), "got %d %s, want %s", w.Code, got, want)
}

func only(path string, handle wire.Handler) []wire.Area {
	return []wire.Area{{Routes: []wire.Route{{Method: http.MethodGet, Path: path, Handle: handle}}}}
}

// handlerOf returns only the engine, with a test's own routes.
func handlerOf(t *testing.T, edit func(*server.Config)) (http.Handler, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	config := server.Config{Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: telemetry.New("test")}
	edit(&config)
	handler := assert.Must(server.NewHandler(config))(t)
	return handler, log
}

// ask calls a handler directly, with one client's address.
func ask(h http.Handler, from, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = from + ":1234"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestDeadline_EndsARequestThatHangs(t *testing.T) {
	t.Parallel()
	var granted time.Duration
	hang := func(c *gin.Context) (wire.Answer, error) {
		<-c.Request.Context().Done()
		return wire.Answer{}, c.Request.Context().Err()
	}
	h, _ := handlerOf(t, func(c *server.Config) {
		c.Deadline = 50 * time.Millisecond
		c.Areas = only("/slow", hang)
	})
	start := time.Now()
	w := ask(h, "192.0.2.1", "GET", "/slow")
	assert.That(t, time.Since(start) <= 4500*time.Millisecond, "took as long as the default of 5 s")
	assert.That(t, w.Code == 503 && w.Header().Get("Retry-After") != "" && strings.Contains(w.Body.String(), `"unavailable"`), "got %d %s %v", w.Code, w.Body, w.Header())
	h, _ = handlerOf(t, func(c *server.Config) {
		c.Areas = only("/quick", func(c *gin.Context) (wire.Answer, error) {
			end, _ := c.Request.Context().Deadline()
			granted = time.Until(end)
			return wire.Answer{}, nil
		})
	})
	ask(h, "192.0.2.1", "GET", "/quick")
	assert.That(t, granted > 0 && granted <= 10*time.Second, "by default a request has %v", granted)
}

// Package wire tests all forms of tags.
func TestIfNoneMatch_SavesTheBody(t *testing.T) {
	s := newShop(t)
	c := s.guest(t).fill("1×1")
	for _, path := range []string{"/cart", "/cart/summary"} {
		whole := c.ok("GET", path, "", "Accept-Encoding", "identity")
		tag := whole.Header.Get("ETag")
		for _, held := range [][]string{{tag}, {"*"}, {`"x.1-y"`, tag}} {
			var headers []string
			for _, value := range held {
				headers = append(headers, "If-None-Match", value)
			}
			for _, method := range []string{"GET", "HEAD"} {
				a := c.send(method, path, "", headers...)
				assert.That(t, a.Status == 304 && len(a.Raw) == 0, "%s %s %q: got %d with %d bytes", method, path, held, a.Status, len(a.Raw))
				for _, header := range []string{"ETag", "Cache-Control", "Vary"} {
					assert.Equal(t, a.Header.Get(header), whole.Header.Get(header), "%s with 304 and with 200", header)
				}
			}
		}
		for _, other := range []string{`"x.1-y"`, `""`} {
			c.ok("GET", path, "", "If-None-Match", other)
		}
		c.ok("GET", path, "", "If-None-Match", tag, "Accept-Language", "ar")
		c.refused(400, "invalid_parameter", "GET", path, "", "If-None-Match", "x").names(t, "If-None-Match")
	}
	tag := c.tag()
	for _, path := range []string{"/cart/count", "/cart/validate"} { // have no version
		c.ok("GET", path, "", "If-None-Match", tag)
		c.ok("GET", path, "", "If-None-Match", "*")
	}
	c.add(`{"product_id":1}`)
	tag = c.ok("GET", "/cart", "", "If-None-Match", tag).Header.Get("ETag")
	s.alter(1, func(p *cart.Product) { p.Price += 50 })
	c.ok("GET", "/cart", "", "If-None-Match", tag)
}

func TestIfMatch_RefusesAChangeToAnOldVersion(t *testing.T) {
	s := realShop(t)
	c := s.guest(t)
	stale := c.add(`{"product_id":1}`).Header.Get("ETag")
	c.add(`{"product_id":2}`)
	for _, call := range [][3]string{
		{"POST", "/cart/add", `{"product_id":1}`}, {"PATCH", "/cart/items/1", `{"quantity":5}`}, {"DELETE", "/cart/items/99"}, {"DELETE", "/cart/clear"},
	} {
		for _, tag := range []string{stale, s.guest(t).tag(), `""`} {
			a := c.refused(412, "version_mismatch", call[0], call[1], call[2], "If-Match", tag).names(t, "If-Match")
			assert.That(t, a.Body.Data.lines() == "1×1 2×1" && a.Body.Data.Version == 2 && a.Header.Get("ETag") != "", "%v: does not show the cart: %s", call, a.Raw)
		}
		c.refused(400, "invalid_parameter", call[0], call[1], call[2], "If-Match", "x").names(t, "If-Match")
	}
	c.wantLines("1×1 2×1")
	for _, form := range []string{"%", "W/%", `"x.1-y", %`, "*"} {
		tag := c.tag("Accept-Language", "ar")
		c.add(`{"product_id":1}`, "If-Match", strings.ReplaceAll(form, "%", tag))
	}
	c.wantLines("1×5 2×1")
	fresh := s.guest(t).refused(412, "version_mismatch", "POST", "/cart/add", `{"product_id":1}`, "If-Match", `"x.3-y"`)
	assert.That(t, fresh.Body.Data.CartToken == nil && fresh.Header.Get("X-Cart-Token") == "", "a refusal issued a token: %s", fresh.Raw)
}

func TestProblems_HaveTheCodesOfTheOpenAPIDocument(t *testing.T) {
	t.Parallel()
	schema := assert.Must(document())(t).Components.Schemas["ErrorCode"].Value
	codes := map[problem.Code]bool{}
	listCodes(schema, codes)
	documented := slices.Sorted(maps.Keys(codes))
	known := slices.Sorted(maps.Keys(problem.Statuses()))
	assert.That(t, slices.Equal(known, documented), "codes of the server: %q,\nof the document: %q", known, documented)
	described, status := map[problem.Code]int{}, 0
	for line := range strings.Lines(schema.Description) {
		if entry, codes, found := strings.Cut(line, ": "); found {
			status, _ = strconv.Atoi(strings.TrimPrefix(entry, "- "))
			line = codes
		}
		for _, code := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(line, -1) {
			described[problem.Code(code[1])] = status
		}
	}
	assert.Equal(t, described, problem.Statuses(), "description of ErrorCode, compared with the server")
}

func TestProblems_AreExplainedInTheGuide(t *testing.T) {
	t.Parallel()
	guide := assert.Must(os.ReadFile("../../../docs/cart.md"))(t)
	_, section, _ := strings.Cut(string(guide), "\n### Error codes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	explained := map[problem.Code]int{}
	for _, row := range regexp.MustCompile("(?m)^- (\\d{3}) `(\\w+)`: \\w").FindAllStringSubmatch(section, -1) {
		explained[problem.Code(row[2])], _ = strconv.Atoi(row[1])
	}
	assert.Equal(t, explained, problem.Statuses(), "docs/cart.md, compared with the server")
	issues := map[problem.Code]bool{}
	listCodes(assert.Must(document())(t).Components.Schemas["IssueCode"].Value, issues)
	assert.That(t, len(issues) >= 10, "the document has only %d codes of issues", len(issues))
	for code := range issues {
		assert.That(t, strings.Contains(section, "`"+string(code)+"`"), "docs/cart.md does not explain %s", code)
	}
}

func TestProblems_HaveAStatusForEachConstantAndNoOther(t *testing.T) {
	t.Parallel()
	source := assert.Must(os.ReadFile("../../../auth/problem/codes.go"))(t)
	var declared []problem.Code
	for _, code := range regexp.MustCompile(`(?m)^\t\w+ .*= "(\w+)"`).FindAllSubmatch(source, -1) {
		declared = append(declared, problem.Code(code[1]))
	}
	slices.Sort(declared)
	assert.Equal(t, declared, slices.Sorted(maps.Keys(problem.Statuses())), "constants, compared with the codes that have a status")
}

func codesOf(schema *openapi3.Schema, into map[problem.Code]bool) {
	for _, parts := range [][]*openapi3.SchemaRef{schema.AllOf, schema.OneOf, schema.AnyOf} {
		for _, part := range parts {
			codesOf(part.Value, into)
		}
	}
	code := schema.Properties["code"]
	if code == nil || code.Ref != "" { // a reference allows all codes
		return
	}
	listCodes(code.Value, into)
}

// listCodes adds the codes that a schema lists; later releases may have others.
func listCodes(code *openapi3.Schema, into map[problem.Code]bool) {
	codes, _ := code.Extensions["x-extensible-enum"].([]any)
	for _, one := range codes {
		into[problem.Code(one.(string))] = true
	}
}

func TestProblems_AreDocumentedUnderTheirStatus(t *testing.T) {
	t.Parallel()
	doc := assert.Must(document())(t)
	seen := map[problem.Code]bool{}
	check := func(where string, status int, response *openapi3.Response) {
		codes := map[problem.Code]bool{}
		codesOf(response.Content.Get("application/json").Schema.Value, codes)
		assert.That(t, len(codes) != 0, "%s: %d names no code", where, status)
		for code := range codes {
			seen[code] = true
			assert.That(t, problem.Statuses()[code] == status, "%s: %s is documented as %d but sent as %d", where, code, status, problem.Statuses()[code])
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				if n, _ := strconv.Atoi(status); n >= 400 && !strings.HasSuffix(response.Ref, "/AgentError") { // of many statuses
					check(method+" "+path, n, response.Value)
				}
			}
		}
	}
	check("any path", http.StatusNotFound, doc.Components.Responses["NotFound"].Value)
	check("any method", http.StatusMethodNotAllowed, doc.Components.Responses["MethodNotAllowed"].Value)
	for code := range problem.Statuses() {
		assert.That(t, seen[code], "no documented response has %s", code)
	}
}

func TestProblemOf_HidesUnexpectedErrors(t *testing.T) {
	t.Parallel()
	unlisted := problem.New("surprise", "", locale.Text{locale.En: "dial tcp 10.0.0.1"})
	for name, tt := range map[string]struct {
		err  error
		want problem.Code
	}{
		"a problem":          {server.ErrNotFound, "not_found"},
		"a wrapped problem":  {fmt.Errorf("call: %w", server.ErrRateLimited), "rate_limited"},
		"a joined problem":   {errors.Join(errors.New("x"), server.ErrUnavailable), "unavailable"},
		"an unlisted code":   {unlisted, "internal"},
		"anything":           {errors.New("dial tcp 10.0.0.1"), "internal"},
		"out of time":        {fmt.Errorf("call: %w", context.DeadlineExceeded), "unavailable"},
		"the caller is gone": {fmt.Errorf("call: %w", context.Canceled), "unavailable"},
	} {
		got := server.ProblemOf(tt.err)
		assert.That(t, got.Code == tt.want && !strings.Contains(got.Message(locale.En), "10.0.0.1"), "%s: %s %q, want %s", name, got.Code, got.Message(locale.En), tt.want)
	}
}

func TestRespond_LeavesOutTheEnvelopeOfABareArea(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	h, _ := handlerOf(t, func(c *server.Config) {
		c.MaxInFlight = 1
		c.Areas = only("/bare", func(g *gin.Context) (wire.Answer, error) {
			switch g.Query("do") {
			case "wait":
				close(entered)
				<-leave
			case "panic":
				panic("bare")
			}
			return wire.Answer{Status: 201, Cache: "public", Data: func(w *wire.Writer) { w.Value([]byte(`{"a":1}`)) }}, nil
		})
		c.Areas[0].Bare = func(path string) wire.Failure {
			if path != "/bare" {
				return nil
			}
			return func(w *wire.Writer, e *problem.Error, status int) {
				w.BeginObject()
				w.Text("code", string(e.Code))
				w.Number("status", int64(status))
				w.EndObject()
			}
		}
	})
	shown := ask(h, "192.0.2.1", "GET", "/bare")
	assert.That(t, shown.Code == 201 && shown.Body.String() == `{"a":1}` && shown.Header().Get("Cache-Control") == "public", "%d %s %v", shown.Code, shown.Body, shown.Header())
	assert.Equal(t, ask(h, "192.0.2.1", "GET", "/bare?do=panic").Body.String(), `{"code":"internal","status":500}`, "after a panic")
	assert.Equal(t, ask(h, "192.0.2.1", "POST", "/bare").Body.String(), `{"code":"method_not_allowed","status":405}`, "another method")
	assert.That(t, strings.HasPrefix(ask(h, "192.0.2.1", "GET", "/other").Body.String(), `{"success":false,`), "another path has no envelope")
	done := make(chan struct{})
	go func() {
		defer close(done)
		ask(h, "192.0.2.1", "GET", "/bare?do=wait")
	}()
	<-entered
	assert.Equal(t, ask(h, "192.0.2.1", "GET", "/bare").Body.String(), `{"code":"unavailable","status":503}`, "above the limit")
	close(leave)
	<-done
}
