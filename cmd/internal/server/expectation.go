package server

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"time"

	"commerce/auth/locale"
	"commerce/auth/problem"
	"commerce/cart/wire"
)

// noBody is the end of the headers of a response with an empty body.
const noBody = "\r\nContent-Length: 0\r\n\r\n"

// isExpectationFailed reports whether p is the response of net/http to an Expect header other than
// 100-continue. No handler sees such a request, and no handler uses this status.
func isExpectationFailed(p []byte) bool {
	return len(p) > len("HTTP/1.1") && bytes.HasPrefix(p[len("HTTP/1.1"):], []byte(" 417 ")) && bytes.HasSuffix(p, []byte(noBody))
}

// refuseExpectation returns that response with the envelope of an error.
func refuseExpectation(response []byte) []byte {
	id, w := rand.Text(), wire.NewWriter(nil, locale.En, nil)
	writeError(w, errExpectation, id, time.Now())
	head := bytes.TrimSuffix(response, []byte(noBody))
	return fmt.Appendf(nil, "%s\r\nContent-Type: %s\r\nCache-Control: no-store\r\nX-Request-Id: %s\r\nContent-Length: %d\r\n\r\n%s",
		head, jsonContent[0], id, len(w.Bytes()), w.Bytes())
}

var errExpectation = problem.New(problem.InvalidParameter, "Expect", locale.Text{
	locale.En: "The service does not support this Expect header. Send 100-continue or none.",
	locale.Ar: "لا تدعم الخدمة ترويسة Expect هذه. أرسل 100-continue أو لا ترسلها.",
})
