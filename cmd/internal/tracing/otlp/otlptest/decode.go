// Package otlptest reads what an exporter of spans has sent.
package otlptest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// sizes of IDs, in bytes.
var sizes = map[string]int{"traceId": 16, "spanId": 8, "parentSpanId": 8}

// Decode reads a body with OpenTelemetry's own messages, and refuses members that these lack.
// TracesData has the members of the request's message, whose package needs gRPC.
func Decode(body []byte) (*spans.TracesData, error) {
	var document any
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	if err := decodeIDs(document); err != nil {
		return nil, err
	}
	standard, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	var all spans.TracesData
	return &all, protojson.Unmarshal(standard, &all)
}

// decodeIDs makes hexadecimal IDs binary ones, because JSON of Protocol Buffers has base64
// instead.
func decodeIDs(document any) error {
	switch node := document.(type) {
	case []any:
		for _, child := range node {
			if err := decodeIDs(child); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, child := range node {
			if size := sizes[name]; size > 0 {
				text, _ := child.(string)
				id, err := hex.DecodeString(text)
				if err != nil || len(id) != size {
					return fmt.Errorf("%s: %v is not %d hexadecimal bytes", name, child, size)
				}
				node[name] = id
			} else if err := decodeIDs(child); err != nil {
				return err
			}
		}
	}
	return nil
}
