package subscriptionshttp

import (
	"commerce/auth/locale"
	"commerce/auth/problem"
)

var errManyStreams = problem.New(problem.Unavailable, "", locale.Text{
	locale.En: "Too many streams of changes are being read. Repeat the request when one has ended.",
	locale.Ar: "تُقرأ حاليًا عمليات بث كثيرة للتغييرات. أعد إرسال الطلب بعد انتهاء إحداها.",
})

// Texts for parameters that are refused.
var (
	textNoParameters = locale.Text{
		locale.En: "Unknown parameter. The summary accepts no parameters.",
		locale.Ar: "معامل غير معروف. لا يقبل الملخص أي معاملات.",
	}
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
	textUnknownOfChanges = locale.Text{
		locale.En: "Unknown parameter. Changes accept %s.",
		locale.Ar: "معامل غير معروف. تقبل التغييرات %s.",
	}
	textUnknownOfHistory = locale.Text{
		locale.En: "Unknown parameter. A history accepts %s.",
		locale.Ar: "معامل غير معروف. يقبل السجل %s.",
	}
	textPlace = locale.Text{
		locale.En: "after is not from the history of this subscription. Send the value of next unchanged, or omit after to start with the newest event.",
		locale.Ar: "قيمة after لا تخص سجل هذا الاشتراك. أرسل قيمة next دون تغيير، أو احذف after للبدء من أحدث حدث.",
	}
	textUnknownOfMetrics = locale.Text{
		locale.En: "Unknown parameter. Metrics accept %s.",
		locale.Ar: "معامل غير معروف. تقبل المقاييس %s.",
	}
	textMonth = locale.Text{
		locale.En: "%s must be a month such as 2026-07, in UTC and not in the future.",
		locale.Ar: "يجب أن يكون %s شهرًا مثل 2026-07 بتوقيت UTC، وألا يكون في المستقبل.",
	}
	textMonthsReversed = locale.Text{
		locale.En: "from must not be after to.",
		locale.Ar: "يجب ألا يكون from بعد to.",
	}
	textManyMonths = locale.Text{
		locale.En: "from and to must include at most %d months.",
		locale.Ar: "يجب ألا تشمل المدة من from إلى to أكثر من %d شهرًا.",
	}
	textNoValue = locale.Text{
		locale.En: "The parameter has no value. Omit it for the default.",
		locale.Ar: "لا قيمة لهذا المعامل. احذفه لاستخدام القيمة الافتراضية.",
	}
	textLimitOfStream = locale.Text{
		locale.En: "A stream does not accept limit. Omit it, or ask for application/json.",
		locale.Ar: "لا يقبل البث المعامل limit. احذفه، أو اطلب application/json.",
	}
	textWaitOfStream = locale.Text{
		locale.En: "A stream does not accept wait. Omit it, or ask for application/json.",
		locale.Ar: "لا يقبل البث المعامل wait. احذفه، أو اطلب application/json.",
	}
	textPlain = locale.Text{
		locale.En: "plain must be 1, and is only for text/csv.",
		locale.Ar: "يجب أن تكون قيمة plain هي 1، وهو لصيغة text/csv فقط.",
	}
	textWaitAlone = locale.Text{
		locale.En: "wait needs after. Read all changes first, then wait for those after the last next.",
		locale.Ar: "يتطلب wait المعامل after. اقرأ كل التغييرات أولًا، ثم انتظر ما بعد آخر قيمة next.",
	}
	textCursor = locale.Text{
		locale.En: "after is not a cursor of this store's changes. Send the value of next unchanged, or omit after to start from the beginning.",
		locale.Ar: "قيمة after لا تخص تغييرات هذا المتجر. أرسل قيمة next دون تغيير، أو احذف after للبدء من البداية.",
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
