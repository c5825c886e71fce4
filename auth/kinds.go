package auth

// The kinds of refused credentials: the Kind of every unauthenticated error.
const (
	kindMissing     = "missing"       // an API token is required, and there is none
	kindMalformed   = "malformed"     // the header or the token cannot be read
	kindNotAccepted = "not_accepted"  // the service accepts no access tokens
	kindType        = "type"          // typ of an access token
	kindSignature   = "signature"     // or algorithm
	kindKey         = "key"           // the issuer does not publish the key
	kindExpired     = "expired"       // exp
	kindNotYetValid = "not_yet_valid" // nbf
	kindIssuer      = "issuer"        // iss
	kindAudience    = "audience"      // aud
	kindClaim       = "claim"         // exp, iss or aud is missing
	kindSubject     = "subject"       // sub
	kindStore       = "store"         // store_id is not an ID, is missing, or is another store's
	kindUnknown     = "unknown"       // there is no such API token, or its store is gone
	kindRevoked     = "revoked"       // an API token
	kindSecret      = "secret"        // of an API token
)

// CredentialKinds lists the kinds of refused credentials.
func CredentialKinds() []string {
	return []string{
		kindMissing, kindMalformed, kindNotAccepted, kindType, kindSignature, kindKey, kindExpired, kindNotYetValid,
		kindIssuer, kindAudience, kindClaim, kindSubject, kindStore, kindUnknown, kindRevoked, kindSecret,
	}
}
