// Texts of the log.

export const log = {
  en: {
    log: "Requests",
    logLead: "Every call that this page makes. Open one for its details.",
    tryCalls: "Calls to try",
    openapi: "API description (OpenAPI)",
    sent: "Request",
    received: "Response",
    pending: "pending",
    failed: "no response",
    noBody: "no body",
    copyCurl: "Copy as curl",
    copied: "Copied. The command contains your tokens.",
    copyFailed: "The browser blocked copying.",
    sendAgain: "Send again with the same key",
  },

  ar: {
    log: "الطلبات",
    logLead: "كل استدعاء تُجريه هذه الصفحة. افتح أي استدعاء لترى تفاصيله.",
    tryCalls: "استدعاءات للتجربة",
    openapi: "وصف الواجهة البرمجية (OpenAPI)",
    sent: "الطلب",
    received: "الاستجابة",
    pending: "قيد الانتظار",
    failed: "لا استجابة",
    noBody: "بلا محتوى",
    copyCurl: "نسخ بصيغة curl",
    copied: "نُسخ الأمر، وفيه رموزك.",
    copyFailed: "منع المتصفح النسخ.",
    sendAgain: "إعادة الإرسال بالمفتاح نفسه",
  },
};
