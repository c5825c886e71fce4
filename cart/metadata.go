package cart

import (
	"maps"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// Metadata is texts that a client stores with a line or a cart, by name. A change of metadata has
// the same type: "" removes a name.
type Metadata map[string]string

// With returns the metadata after a change. It changes neither.
func (m Metadata) With(changes Metadata) Metadata {
	if len(changes) == 0 {
		return m
	}
	merged := Metadata{}
	maps.Copy(merged, m)
	maps.Copy(merged, changes)
	maps.DeleteFunc(merged, func(_, value string) bool { return value == "" })
	if len(merged) == 0 {
		return nil
	}
	return merged
}

// TextSize returns the size in bytes of the values. Names do not count.
func (m Metadata) TextSize() int64 {
	var n int64
	for _, value := range m {
		n += int64(len(value))
	}
	return n
}

// StoredText returns the bytes that metadata takes in Redis: its values, and its names, which the shopper chooses too.
func (m Metadata) StoredText() int64 {
	n := m.TextSize()
	for name := range m {
		n += int64(len(name))
	}
	return n
}

// refuseMetadata refuses metadata with more names than before and than allowed.
func refuseMetadata(before, after Metadata) *Refusal {
	if len(after) <= max(len(before), MaxMetadata) {
		return nil
	}
	return &Refusal{Code: MetadataFull}
}

func tooMuchMetadata(before, after Metadata) *problem.Error {
	if refusal := refuseMetadata(before, after); refusal != nil {
		return refusal.Problem("metadata", nil, Limits{})
	}
	return nil
}

var textTooManyNames = locale.Text{
	locale.En: "There is no room for more metadata. The maximum number of names is %d.",
	locale.Ar: "لا مكان لمزيد من البيانات الوصفية. الحد الأقصى لعدد الأسماء هو %d.",
}
