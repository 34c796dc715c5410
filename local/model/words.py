"""The word lists behind the default answers: what carries no meaning, what asks, what hints at what."""

from __future__ import annotations

import re
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Of no weight in a summary: function words, and the fillers of calls and radio traffic.
STOP: Final = _words(
    """
    a about after again all also am an and any are aren't as at be because been before being but by
    can can't could did didn't do does doesn't doing don't for from get go going gonna got had
    has hasn't have haven't having he her here him his how i i'd i'll i'm i've if in into is isn't
    it it's its just know let let's like me more most my no not now of off on one only or other our
    out over own re really right said same say see she should so some still such take than that
    that's the their them then there there's these they they're they've this those through to too
    two three up us very was we we'd we'll we're we've well were what what's when where which while
    who why will with won't would yes you you'd you'll you're you've your affirmative affirm bye
    clear copy hello hey hi hmm huh loud mark negative oh okay ok over reading rog roger sir stand
    standby sure thank thanks uh um yeah yep
    """
)

# Sentences with these matter more than their frequency says.
WEIGHTY: Final = _words(
    """
    accident agree agreed alarm angry approved asap bang broke broken bug cancel crash critical
    danger deadline decide decided decision delay emergency error failed fails failure fault
    fire important incident issue leak lost missing must outage problem problems refund risk stuck
    trouble urgent warning wrong
    """
)

# And these most: what went wrong is what a call was about.
GRAVE: Final = _words("accident emergency failed failure fire outage problem problems")

# Verbs that open a request when a sentence starts with them.
IMPERATIVES: Final = _words(
    """
    add arrange ask assign attempt book bring call cancel change charge check clean clear close come
    complete confirm connect contact copy create cut delete deliver disconnect draft drop email
    ensure extend file fill find finish fix follow forward get give go hand hold inform install
    invite isolate keep leave let look make meet monitor move notify open order pay please plan
    power prepare provide pull push put reconnect record refund remove repair replace reply report
    reschedule reset resolve restart return review run schedule select send set share ship show sign
    start stay stir stop submit switch take tell test track transfer try turn update upgrade upload
    use verify wait watch write
    """
)

REQUEST: Final = re.compile(
    r"\b(?:please|(?:would|could|can|will) you|(?:we'd|i'd|we would|i would) like you to|"
    r"(?:want|need) you to|(?:need|needs|have|has) to (?!be\b)|make sure|don't forget|remember to|"
    r"action item|to-?do|follow[ -]up|you (?:should|must) (?!have\b|be\b)|let's|"
    r"i'll (?:send|call|check|get|write|prepare|follow|schedule|update))",
    re.IGNORECASE,
)

# Said in every call, asked of nobody.
NO_REQUEST: Final = re.compile(
    r"\b(?:say again|stand ?by|go ahead|copy that|thank you|hear me|read(?:ing)? (?:you|me)|over and out|"
    r"come in|hold on|let me|(?:would|do) you (?:like|rather|want))\b",
    re.IGNORECASE,
)

# Beginnings of words that speak for a value of an enumeration, and through it for a category.
HINTS: Final = {
    "high": "urgent asap immediate emergenc critical outage production deadline today blocked cannot severe "
    "dangerous fire legal lawsuit breach lost stolen fraud escalat hours",
    "low": "whenever wonder curious sometime eventual suggest idea feedback typo minor rush someday newsletter",
    "critical": "emergenc outage danger fire breach fraud",
    "urgent": "asap immediate emergenc critical outage today deadline",
    "positive": "great love excellent happy thank perfect wonderful amazing recommend pleased good",
    "negative": "terrible awful angry bad worst disappoint unhappy broken hate problem fail refund poor",
    "billing": "bill invoice charge refund payment paid pay card subscription price credit receipt vat",
    "payment": "bill invoice charge refund paid pay card credit",
    "technical": "down site error crash bug broken fail login password install load timeout website app server outage",
    "support": "error help broken fail login password install problem question",
    "bug": "error crash broken fail wrong exception glitch freeze",
    "sales": "quote demo buy purchase price pricing offer trial license upgrade interested seats",
    "complaint": "complain disappoint unacceptable terrible unhappy angry worst refund compensation rude",
    "feedback": "suggest idea love improve great wish nice",
    "feature": "suggest idea wish add would improve",
    "account": "login password sign email profile username delete access locked",
    "shipping": "deliver parcel package arrive ship tracking courier late",
    "delivery": "deliver parcel package arrive ship tracking courier late",
    "order": "deliver parcel package ship purchase",
    "return": "return exchange wrong size refund",
    "cancellation": "cancel terminate unsubscribe end",
    "cancel": "terminate unsubscribe",
    "legal": "lawyer gdpr contract privacy sue court",
    "security": "breach hack phish password stolen fraud vulnerab",
    "spam": "casino viagra lottery winner prize seo backlink",
    "question": "how what when where why wonder could",
    "partnership": "partner collaborat reseller affiliate",
    "job": "apply resume vacancy position career hiring",
    "credential": "password passphrase passcode login token",
    "health": "diagnos patient disease illness surgery medication pregnan",
    "confidential": "secret classified undisclosed",
    "abuse": "idiot stupid moron insult harass threaten",
    "fraud": "brib kickback forged launder embezzl deceiv",
    "date": "january february march april june july august september october november december monday tuesday "
    "wednesday thursday friday saturday sunday",
    "place": "city town street island river valley sea crater mountain county country",
    "organization": "inc ltd gmbh corp company agency ministry university institute committee department council",
    "amount": "usd eur gbp dollar euro percent",
    "transcript": "roger copy caller speaker",
    "contract": "hereby parties agreement clause termination",
    "minutes": "attendees agenda resolved adjourned",
    "manual": "install step instructions warranty",
    "report": "findings results figure conclusion quarter",
}

# Parts of such values that say nothing by themselves.
VAGUE: Final = _words("data risk information content material type kind")

# What speaks for a value without a word of its own: addresses and numbers. Repetitions are bounded.
SHAPES: Final = {
    "personal": re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}\.\w{2,}|\+\d[\d ()/-]{7,20}\d"),
    "payment": re.compile(r"\b(?:\d{4}[ -]?){3}\d{1,7}\b|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}\b"),
    "transcript": re.compile(r"^\[?-?\d\d:\d\d[\d:.]{0,12}\]? [A-Z][^:\n]{0,40}: ", re.MULTILINE),
    "date": re.compile(r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2} [A-Z][a-z]{2,8} \d{4}\b"),
    "amount": re.compile(r"[$€£]\s?\d[\d.,]{0,20}\d|\b\d[\d.,]{0,20} ?(?:%|USD|EUR|GBP)"),
}

# What an enumeration means when nothing speaks for any of its values.
NEUTRAL: Final = ("normal", "medium", "neutral", "other", "general", "none", "unknown", "question")

# Labels of forms, which look like speakers ("Name: …").
FORM_LABELS: Final = _words(
    """
    account address amount category city comment comments company country customer date department
    description email fax from id language message mobile name notes number order organisation
    organization phone postcode priority product question reason reference source state street
    subject telephone text title to topic type url user website zip
    """
)
