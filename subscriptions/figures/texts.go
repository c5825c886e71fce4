package figures

import "commerce/auth/locale"

// Texts for parameters that are refused.
var (
	textNoParameters = locale.Text{
		locale.En: "Unknown parameter. The summary accepts no parameters.",
		locale.Ar: "معامل غير معروف. لا يقبل الملخص أي معاملات.",
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
)
