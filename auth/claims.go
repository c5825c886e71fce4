package auth

import (
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"
)

// payload has the claims of a JWT in the form that the library validates. A claim that is
// present must have its type: null does not count as absent.
type payload struct {
	jwt.RegisteredClaims                // without iat and jti, which are not checked
	storeID              jsontext.Value // empty: absent
}

// UnmarshalJSON reads the claims more strictly than encoding/json, which accepts "SUB" for
// "sub", the last of duplicate members, and invalid UTF-8. Each of these could identify
// one customer here and another one elsewhere.
func (p *payload) UnmarshalJSON(text []byte) error {
	var raw struct {
		Issuer    claimText      `json:"iss"`
		Audience  claimTexts     `json:"aud"`
		Subject   claimText      `json:"sub"`
		StoreID   jsontext.Value `json:"store_id"`
		Expiry    claimTime      `json:"exp"`
		NotBefore claimTime      `json:"nbf"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return errClaimType
	}
	p.Issuer, p.Subject, p.Audience = string(raw.Issuer), string(raw.Subject), jwt.ClaimStrings(raw.Audience)
	p.ExpiresAt, p.NotBefore, p.storeID = raw.Expiry.date, raw.NotBefore.date, raw.StoreID
	return nil
}

// errClaimType replaces all errors about the JSON of claims, which may quote them.
var errClaimType = errors.New("a claim is not of its type")

type claimText string

func (t *claimText) UnmarshalJSON(v []byte) error {
	if jsontext.Value(v).Kind() != jsontext.KindString {
		return errClaimType
	}
	return json.Unmarshal(v, (*string)(t))
}

// claimTexts is a string or an array of strings. An empty string is no text.
type claimTexts []string

func (t *claimTexts) UnmarshalJSON(v []byte) error {
	if jsontext.Value(v).Kind() == jsontext.KindBeginArray {
		return json.Unmarshal(v, (*[]string)(t))
	}
	var single claimText
	err := single.UnmarshalJSON(v)
	if single != "" {
		*t = claimTexts{string(single)}
	}
	return err
}

// maxClaimTime is the maximum distance from 1970 in seconds. Up to it a float64 is exact;
// beyond int64 the conversion differs between processors.
const maxClaimTime = 1 << 53

type claimTime struct{ date *jwt.NumericDate }

func (t *claimTime) UnmarshalJSON(v []byte) error {
	seconds, err := strconv.ParseFloat(string(v), 64)
	if err != nil || seconds < -maxClaimTime || seconds > maxClaimTime {
		return errClaimType
	}
	t.date = jwt.NewNumericDate(time.Unix(int64(seconds), 0))
	return nil
}

// claimStore reads a store's ID, a number or its decimal text, 0 if it is absent.
func claimStore(v jsontext.Value) (id int64, ok bool) {
	switch v.Kind() {
	case jsontext.KindInvalid: // absent
		return 0, true
	case jsontext.KindNumber:
		return parseID(string(v))
	}
	var digits claimText
	err := digits.UnmarshalJSON(v)
	id, ok = parseID(string(digits))
	return id, ok && err == nil
}
