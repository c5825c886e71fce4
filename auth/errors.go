package auth

import (
	"errors"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// unavailable is for a source that does not answer. A cause that callers are told about remains.
func unavailable(cause error) *problem.Error {
	if known, ok := errors.AsType[*problem.Error](cause); ok {
		return known
	}
	return problem.New(problem.Unavailable, "", locale.Text{
		locale.En: "Your access cannot be checked right now. Please try again in a moment.",
		locale.Ar: "يتعذر التحقق من صلاحية الدخول حاليًا. يُرجى المحاولة بعد لحظات.",
	}).Because(cause)
}

// Refusals of a request whose store is missing or unknown.
var (
	errStoreRequired = problem.New(problem.StoreRequired, "X-Public-Key", locale.Text{
		locale.En: "The request names no store. Send the store's publishable key in the header X-Public-Key.",
		locale.Ar: "لا يحدد الطلب أي متجر. أرسل المفتاح العام للمتجر في الترويسة X-Public-Key.",
	})
	errStoreUnknown = problem.New(problem.StoreUnknown, "X-Public-Key", locale.Text{
		locale.En: "No store has this X-Public-Key. Check the key in the store's settings.",
		locale.Ar: "لا يوجد متجر بهذا المفتاح في X-Public-Key. تحقق من المفتاح في إعدادات المتجر.",
	})
	errNoSuchStore = problem.New(problem.NotFound, "", locale.Text{
		locale.En: "This URL belongs to no store.",
		locale.Ar: "هذا العنوان لا يخص أي متجر.",
	})
	errTokenStoreUnknown = problem.New(problem.StoreUnknown, "Authorization", locale.Text{
		locale.En: "The store_id of the access token does not exist. Check the service that issued the token.",
		locale.Ar: "لا يوجد متجر بقيمة store_id الواردة في رمز الوصول. تحقق من الخدمة التي أصدرت الرمز.",
	})
	errPublicKeyRepeated = problem.New(problem.InvalidParameter, "X-Public-Key", locale.Text{
		locale.En: "The request has several X-Public-Key headers with different values. Send one.",
		locale.Ar: "يحتوي الطلب على عدة ترويسات X-Public-Key بقيم مختلفة. أرسل واحدة فقط.",
	})
)

// Refusals of a customer's token. A shopper reads those of tokens that were once good: they tell
// the shopper to log in again. The others are mistakes of a program.
var (
	errBearerMalformed = unauthenticated("malformed", locale.Text{
		locale.En: "Your session is not valid. Please log in again. For developers: send a single Authorization header, “Bearer <access token>”, and none for a guest.",
		locale.Ar: "جلستك غير صالحة. يُرجى تسجيل الدخول من جديد. للمطورين: أرسلوا الترويسة Authorization مرة واحدة بالصيغة «\u2066Bearer <access token>\u2069»، ولا ترسلوها إذا كان العميل زائرًا.",
	})
	errNoCustomers = unauthenticated("not_accepted", locale.Text{
		locale.En: "This service does not accept access tokens. Omit the Authorization header.",
		locale.Ar: "لا تقبل هذه الخدمة رموز الوصول. احذف الترويسة Authorization.",
	})
	errTokenMalformed = unauthenticated("malformed", locale.Text{
		locale.En: "Your session is not valid. Please log in again. For developers: the access token must be a signed JSON Web Token of at most 8 KiB without critical extensions.",
		locale.Ar: "جلستك غير صالحة. يُرجى تسجيل الدخول من جديد. للمطورين: يجب أن يكون رمز الوصول JSON Web Token موقّعًا لا يتجاوز 8 كيلوبايت وبلا امتدادات إلزامية.",
	})
	errTokenType = unauthenticated("type", locale.Text{
		locale.En: "The typ of the access token must be JWT or at+jwt, or be absent.",
		locale.Ar: "يجب أن تكون قيمة typ في رمز الوصول JWT أو at+jwt أو أن تُحذف.",
	})
	errTokenSignature = unauthenticated("signature", locale.Text{
		locale.En: "Your session is not valid. Please log in again. For developers: the access token's signature or algorithm is not accepted; check that the issuer and this service use the same keys.",
		locale.Ar: "جلستك غير صالحة. يُرجى تسجيل الدخول من جديد. للمطورين: توقيع رمز الوصول أو خوارزميته غير مقبولين، فتحققوا من أن جهة الإصدار والخدمة تستخدمان المفاتيح نفسها.",
	})
	errTokenKeyUnknown = unauthenticated("key", locale.Text{
		locale.En: "Your session is not valid. Please log in again. For developers: the issuer does not publish a key with the access token's kid and alg.",
		locale.Ar: "جلستك غير صالحة. يُرجى تسجيل الدخول من جديد. للمطورين: لا تنشر جهة الإصدار مفتاحًا يوافق kid وalg في رمز الوصول.",
	})
	errTokenExpired = unauthenticated("expired", locale.Text{
		locale.En: "Your session has expired. Please log in again.",
		locale.Ar: "انتهت جلستك. يُرجى تسجيل الدخول من جديد.",
	})
	errTokenNotYetValid = unauthenticated("not_yet_valid", locale.Text{
		locale.En: "The access token is not valid yet. Check its nbf and the issuer's clock.",
		locale.Ar: "لم تبدأ صلاحية رمز الوصول بعد. تحقق من nbf ومن ساعة جهة الإصدار.",
	})
	errTokenIssuer = unauthenticated("issuer", locale.Text{
		locale.En: "The iss of the access token is not the issuer that this service accepts.",
		locale.Ar: "قيمة iss في رمز الوصول ليست جهة الإصدار التي تقبلها هذه الخدمة.",
	})
	errTokenAudience = unauthenticated("audience", locale.Text{
		locale.En: "The aud of the access token does not name this service.",
		locale.Ar: "قيمة aud في رمز الوصول لا تشمل هذه الخدمة.",
	})
	errTokenClaimMissing = unauthenticated("claim", locale.Text{
		locale.En: "The access token lacks a claim. exp is required. iss and aud are required if this service checks them.",
		locale.Ar: "ينقص رمز الوصول حقل مطلوب: exp إلزامي، وكذلك iss وaud عندما تتحقق الخدمة منهما.",
	})
	errTokenSubject = unauthenticated("subject", locale.Text{
		locale.En: "The sub of the access token must be the customer's id: 1 to 255 characters.",
		locale.Ar: "يجب أن تكون قيمة sub في رمز الوصول معرّف العميل: من 1 إلى 255 حرفًا.",
	})
	errTokenStoreID = unauthenticated("store", locale.Text{
		locale.En: "The store_id of the access token must be a positive integer or its decimal text.",
		locale.Ar: "يجب أن تكون قيمة store_id في رمز الوصول عددًا صحيحًا موجبًا أو نصه العشري.",
	})
	errTokenNamesNoStore = unauthenticated("store", locale.Text{
		locale.En: "The access token has no store_id and this service has no default store. Obtain a token with a store_id.",
		locale.Ar: "لا يحتوي رمز الوصول على store_id وليس لهذه الخدمة متجر افتراضي. احصل على رمز يتضمن store_id.",
	})
	errOtherStore = unauthenticated("store", locale.Text{
		locale.En: "You are logged in to another store. Please log in to this one. For developers: the access token's store_id is not the store of X-Public-Key.",
		locale.Ar: "سجّلت الدخول إلى متجر آخر. يُرجى تسجيل الدخول إلى هذا المتجر. للمطورين: قيمة store_id في رمز الوصول ليست للمتجر الذي تحدده الترويسة X-Public-Key.",
	})
)

// Refusals of a store's token. The isolates (U+2066 and U+2069) keep a header readable from left to
// right in an Arabic sentence.
var (
	errAPITokenMissing = unauthenticated("missing", locale.Text{
		locale.En: "An API token is required. Send one header, “Authorization: Bearer <id>|<secret>”.",
		locale.Ar: "رمز API مطلوب. أرسله في ترويسة واحدة بالصيغة «\u2066Authorization: Bearer <id>|<secret>\u2069».",
	})
	errAPITokenMalformed = unauthenticated("malformed", textAPITokenInvalid)
	errAPITokenUnknown   = unauthenticated("unknown", textAPITokenInvalid)
	errAPITokenRevoked   = unauthenticated("revoked", textAPITokenInvalid)
	errAPITokenSecret    = unauthenticated("secret", textAPITokenInvalid)
)

// textAPITokenInvalid does not say what is wrong, and so not which tokens exist.
var textAPITokenInvalid = locale.Text{
	locale.En: "The API token is not valid. It may be mistyped or revoked, or be a token of another type.",
	locale.Ar: "رمز API غير صالح: إما أنه مكتوب خطأً أو أُلغي أو أنه من نوع آخر.",
}

func unauthenticated(kind string, text locale.Text) *problem.Error {
	refusal := problem.New(problem.Unauthenticated, "Authorization", text)
	refusal.Kind = kind
	return refusal
}

// CredentialKinds lists the Kinds of unauthenticated errors, which docs/runbook.md explains.
func CredentialKinds() []string {
	return []string{
		"missing", "malformed", "not_accepted", "type", "signature", "key", "expired", "not_yet_valid",
		"issuer", "audience", "claim", "subject", "store", "unknown", "revoked", "secret",
	}
}
