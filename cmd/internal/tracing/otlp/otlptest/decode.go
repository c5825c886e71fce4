// Package otlptest reads what an exporter of spans has sent.
package otlptest

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"

	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

var ids = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([^"]*)"`)

// sizes of IDs, in bytes.
var sizes = map[string]int{"traceId": 16, "spanId": 8, "parentSpanId": 8}

// Decode reads a body with OpenTelemetry's own messages, and refuses members that these lack.
// TracesData has the members of the request's message, whose package needs gRPC. JSON of Protocol
// Buffers has IDs in base64 instead.
func Decode(body []byte) (*spans.TracesData, error) {
	var wrong error
	standard := ids.ReplaceAllFunc(body, func(member []byte) []byte {
		parts := ids.FindSubmatch(member)
		id, err := hex.DecodeString(string(parts[2]))
		if err != nil || len(id) != sizes[string(parts[1])] {
			wrong = fmt.Errorf("%s is not hexadecimal, or of another size", member)
		}
		return fmt.Appendf(nil, `"%s":"%s"`, parts[1], base64.StdEncoding.EncodeToString(id))
	})
	var all spans.TracesData
	return &all, errors.Join(wrong, protojson.Unmarshal(standard, &all))
}
