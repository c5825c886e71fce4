package subscriptionshttp

import "commerce/auth/locale"

var textUnknownCurrency = locale.Text{
	locale.En: "Subscription %d has the currency %s, which the service does not support yet.",
	locale.Ar: "عملة الاشتراك %d هي %s، ولا تدعمها الخدمة بعد.",
}

// Texts for parameters that are refused.
var (
	textUnreadable = locale.Text{
		locale.En: "The query cannot be read. Percent-encode the parameters' values.",
		locale.Ar: "تتعذر قراءة معاملات الطلب. رمّز قيمها بصيغة percent-encoding.",
	}
	textUnknown = locale.Text{
		locale.En: "Unknown parameter. The list accepts %s.",
		locale.Ar: "معامل غير معروف. تقبل القائمة %s.",
	}
	textPlus = locale.Text{
		locale.En: "%s must not have a space. A + in a URL means a space: send it as %%2B.",
		locale.Ar: "يجب ألا تحتوي قيمة %s على مسافة. تعني علامة + في الرابط مسافة، فأرسلها بصيغة %%2B.",
	}
	textRepeated = locale.Text{
		locale.En: "The parameter must appear only once.",
		locale.Ar: "يجب ألا يتكرر هذا المعامل.",
	}
	textEmpty = locale.Text{
		locale.En: "The parameter has no value. Omit it to list all subscriptions.",
		locale.Ar: "لا قيمة لهذا المعامل. احذفه لعرض كل الاشتراكات.",
	}
	textTooFar = locale.Text{
		locale.En: "This page skips more than 1000000 subscriptions. Follow next_page_url from an earlier page instead, or use a filter.",
		locale.Ar: "تتخطى هذه الصفحة أكثر من 1000000 اشتراك. اتبع next_page_url من صفحة سابقة، أو استخدم أحد عوامل التصفية.",
	}
	// TextNoValue is for the parameters of other calls than the list.
	TextNoValue = locale.Text{
		locale.En: "The parameter has no value. Omit it for the default.",
		locale.Ar: "لا قيمة لهذا المعامل. احذفه لاستخدام القيمة الافتراضية.",
	}
	textSort = locale.Text{
		locale.En: "sort must be periodEnd. Omit it to list the newest subscriptions first.",
		locale.Ar: "يجب أن تكون قيمة sort هي periodEnd. احذف sort لعرض أحدث الاشتراكات أولًا.",
	}
	textNeedsSort = locale.Text{
		locale.En: "The parameter needs sort=periodEnd.",
		locale.Ar: "يتطلب هذا المعامل sort=periodEnd.",
	}
	textNotSorted = locale.Text{
		locale.En: "The parameter cannot be combined with sort=periodEnd, which accepts %s.",
		locale.Ar: "لا يمكن الجمع بين هذا المعامل وsort=periodEnd، الذي يقبل %s.",
	}
	textEndsFirst = locale.Text{
		locale.En: "%s must not be before %s.",
		locale.Ar: "يجب ألا يسبق %s التاريخ %s.",
	}
	textLink = locale.Text{
		locale.En: "cursor is not from this list. Follow next_page_url and prev_page_url unchanged, or use page without cursor.",
		locale.Ar: "قيمة cursor لا تخص هذه القائمة. اتبع next_page_url وprev_page_url دون تغيير، أو استخدم page دون cursor.",
	}
)
