package history

import "commerce/auth/locale"

// Texts for parameters that are refused.
var (
	textUnknownOfHistory = locale.Text{
		locale.En: "Unknown parameter. A history accepts %s.",
		locale.Ar: "معامل غير معروف. يقبل السجل %s.",
	}
	textPlace = locale.Text{
		locale.En: "after is not from the history of this subscription. Send the value of next unchanged, or omit after to start with the newest event.",
		locale.Ar: "قيمة after لا تخص سجل هذا الاشتراك. أرسل قيمة next دون تغيير، أو احذف after للبدء من أحدث حدث.",
	}
)
