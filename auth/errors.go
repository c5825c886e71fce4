package auth

import (
	"commerce/auth/locale"
	"commerce/auth/problem"
)

func refusal(code problem.Code, member, en, ar string) *problem.Error {
	return problem.New(code, member, locale.Text{locale.En: en, locale.Ar: ar})
}

// unavailable is for a call that fails because a source does not answer.
func unavailable(cause error) *problem.Error {
	return problem.New(problem.Unavailable, "", textUnavailable).Because(cause)
}

var textUnavailable = locale.Text{
	locale.En: "The caller cannot be identified right now. Repeat the request unchanged in a moment.",
	locale.Ar: "يتعذر التحقق من هوية صاحب الطلب حاليًا. أعد إرسال الطلب نفسه بعد لحظات.",
}

// Refusals of a request whose store is missing or unknown.
var (
	errStoreRequired = refusal(problem.StoreRequired, "X-Public-Key",
		"The request names no store. Send the store's publishable key in the header X-Public-Key.",
		"لا يحدد الطلب أي متجر. أرسل المفتاح العام للمتجر في الترويسة X-Public-Key.")
	errStoreUnknown = refusal(problem.StoreUnknown, "X-Public-Key",
		"No store has this X-Public-Key. Check the key in the store's settings.",
		"لا يوجد متجر بهذا المفتاح في X-Public-Key. تحقق من المفتاح في إعدادات المتجر.")
	errTokenStoreUnknown = refusal(problem.StoreUnknown, "Authorization",
		"The store_id of the access token does not exist. Check the service that issued the token.",
		"لا يوجد متجر بقيمة store_id الواردة في رمز الوصول. تحقق من الخدمة التي أصدرت الرمز.")
	errPublicKeyRepeated = refusal(problem.InvalidParameter, "X-Public-Key",
		"The request has several X-Public-Key headers with different values. Send one.",
		"يحتوي الطلب على عدة ترويسات X-Public-Key بقيم مختلفة. أرسل واحدة فقط.")
)

// Refusals of a customer's token.
var (
	errBearerMalformed = unauthenticated(
		"The request must have a single Authorization header, as \"Bearer <access token>\". Omit it for a guest.",
		"يجب أن ترد الترويسة Authorization مرة واحدة بالصيغة \"Bearer <access token>\". احذفها إذا كان العميل زائرًا.")
	errNoCustomers = unauthenticated(
		"This service does not accept access tokens. Omit the Authorization header.",
		"لا تقبل هذه الخدمة رموز الوصول. احذف الترويسة Authorization.")
	errTokenMalformed = unauthenticated(
		"The access token cannot be read. It must be a signed JSON Web Token of at most 8 KiB without critical extensions.",
		"تعذرت قراءة رمز الوصول: يجب أن يكون JSON Web Token موقّعًا لا يتجاوز 8 كيلوبايت وبلا امتدادات إلزامية.")
	errTokenType = unauthenticated(
		"The typ of the access token must be JWT or at+jwt, or be absent.",
		"يجب أن تكون قيمة typ في رمز الوصول JWT أو at+jwt أو أن تُحذف.")
	errTokenSignature = unauthenticated(
		"The access token's signature or algorithm is not accepted. Check that the issuer and this service use the same keys.",
		"توقيع رمز الوصول أو خوارزميته غير مقبولين. تحقق من أن جهة الإصدار والخدمة تستخدمان المفاتيح نفسها.")
	errTokenKeyUnknown = unauthenticated(
		"The issuer does not publish a key with the access token's kid and alg. Obtain a new token.",
		"لا تنشر جهة الإصدار مفتاحًا يوافق kid و alg في رمز الوصول. احصل على رمز جديد.")
	errTokenExpired = unauthenticated(
		"The access token has expired. Obtain a new one.",
		"انتهت صلاحية رمز الوصول. احصل على رمز جديد.")
	errTokenNotYetValid = unauthenticated(
		"The access token is not valid yet. Check its nbf and the issuer's clock.",
		"لم تبدأ صلاحية رمز الوصول بعد. تحقق من nbf ومن ساعة جهة الإصدار.")
	errTokenIssuer = unauthenticated(
		"The iss of the access token is not the issuer that this service accepts.",
		"قيمة iss في رمز الوصول ليست جهة الإصدار التي تقبلها هذه الخدمة.")
	errTokenAudience = unauthenticated(
		"The aud of the access token does not name this service.",
		"قيمة aud في رمز الوصول لا تشمل هذه الخدمة.")
	errTokenClaimMissing = unauthenticated(
		"The access token lacks a claim. exp is required. iss and aud are required if this service checks them.",
		"ينقص رمز الوصول حقل مطلوب: exp إلزامي، وكذلك iss و aud عندما تتحقق الخدمة منهما.")
	errTokenSubject = unauthenticated(
		"The sub of the access token must be the customer's id: 1 to 255 characters.",
		"يجب أن تكون قيمة sub في رمز الوصول معرّف العميل: من 1 إلى 255 محرفًا.")
	errTokenStoreID = unauthenticated(
		"The store_id of the access token must be a positive integer or its decimal text.",
		"يجب أن تكون قيمة store_id في رمز الوصول عددًا صحيحًا موجبًا أو نصه العشري.")
	errTokenNamesNoStore = unauthenticated(
		"The access token has no store_id and this service has no default store. Obtain a token with a store_id.",
		"لا يحتوي رمز الوصول على store_id وليس لهذه الخدمة متجر افتراضي. احصل على رمز يتضمن store_id.")
	errOtherStore = unauthenticated(
		"The access token belongs to a different store than X-Public-Key.",
		"رمز الوصول يخص متجرًا غير الذي تحدده الترويسة X-Public-Key.")
)

// Refusals of a store's token.
var (
	errAPITokenMissing = unauthenticated(
		"An API token is required. Send one header, \"Authorization: Bearer <id>|<secret>\".",
		"رمز API مطلوب. أرسله في ترويسة واحدة بالصيغة \"Authorization: Bearer <id>|<secret>\".")
	errAPITokenInvalid = unauthenticated(
		"The API token is not valid. It may be mistyped or revoked, or be a token of another type.",
		"رمز API غير صالح: إما أنه مكتوب خطأً أو أُلغي أو أنه من نوع آخر.")
)

func unauthenticated(en, ar string) *problem.Error {
	return refusal(problem.Unauthenticated, "Authorization", en, ar)
}
