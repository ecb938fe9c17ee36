"""Word lists the grammars draw from, one string per list, items apart by a bar."""

from __future__ import annotations

__all__ = ["PHRASES"]

_LISTS = {
    "symptom": (
        "a burning pain|a dull ache|numbness|swelling|a red rash|dizziness|shortness of breath|"
        "a dry cough|blurred vision|nausea|stiffness|itching|cramps|palpitations|a high fever|"
        "constant fatigue|a sharp headache|night sweats|ringing in the ears|tingling|bleeding gums|"
        "hair loss|vomiting|chest tightness|insomnia|bloating"
    ),
    "part": (
        "left knee|lower back|right shoulder|stomach|chest|neck|left foot|right ear|throat|scalp|"
        "jaw|"
        "abdomen|right wrist|left hip|calf|forehead|elbow|groin|thumb|eyelid|upper arm|heel"
    ),
    "condition": (
        "gastritis|eczema|migraine|anemia|sinusitis|tendonitis|asthma|psoriasis|arthritis|"
        "a kidney stone|"
        "hypothyroidism|vertigo|an ulcer|bronchitis|a pinched nerve|high blood pressure|diabetes|"
        "a food allergy|acid reflux|a urinary infection|gout|sciatica|a fungal infection|pneumonia|"
        "anxiety|a hernia"
    ),
    "test": (
        "blood test|MRI scan|chest x-ray|ultrasound|urine culture|thyroid panel|ECG|CT scan|biopsy|"
        "stool test|skin patch test|hearing test|bone scan|endoscopy"
    ),
    "food": (
        "spicy food|dairy|coffee|red meat|alcohol|fried snacks|citrus fruit|chocolate|wheat|"
        "sugary drinks"
    ),
    "job": (
        "teacher|carpenter|nurse|driver|software engineer|farmer|chef|student|accountant|cleaner|"
        "electrician|pilot|librarian|welder|musician|lawyer|baker|plumber"
    ),
    "relative": (
        "wife|husband|mother|father|son|daughter|brother|sister|uncle|grandmother|friend|neighbour"
    ),
    "period": ("weeks|days|months|years"),
    "frequency": (
        "twice a day|once daily|every eight hours|at bedtime|before meals|after breakfast|"
        "three times a week|every other day|in the morning"
    ),
    "lodging": (
        "hostel|guesthouse|small hotel|rented flat|campsite|farm stay|beach hut|houseboat|"
        "mountain lodge"
    ),
    "sight": (
        "the old harbour|the night market|the cathedral|the botanical garden|the castle ruins|"
        "the glass museum|the hot springs|the cliff walk|the fish auction|the monastery|"
        "the tram museum|"
        "the lighthouse|the canyon trail|the puppet theatre"
    ),
    "dish": (
        "grilled sardines|lamb stew|rice noodles|pumpkin dumplings|smoked trout|goat curry|"
        "potato pancakes|fried plantain|mussel soup|walnut cake|pickled herring|cheese pie"
    ),
    "transport": (
        "night train|ferry|local bus|shared taxi|rental car|scooter|cable car|bicycle|coach"
    ),
    "department": (
        "finance|marketing|logistics|research|payroll|sales|quality control|legal|customer care|"
        "procurement|engineering"
    ),
    "product": (
        "router|washing machine|laptop|coffee grinder|thermostat|vacuum cleaner|electric bike|"
        "camera|"
        "printer|heat pump|tablet|dishwasher|smart lock"
    ),
    "fault": (
        "will not turn on|makes a loud noise|keeps losing the connection|shows an error code|"
        "leaks water|"
        "overheats|will not charge|stops after a minute|reboots by itself"
    ),
    "skill": (
        "spreadsheets|negotiation|welding|public speaking|contract law|data cleaning|first aid|"
        "forklift driving|bookkeeping|photo editing"
    ),
    "clause": (
        "terminate this agreement|renew the lease|inspect the premises|transfer the shares|"
        "suspend delivery|audit the records|withhold payment|assign the licence"
    ),
    "adjective": (
        "quiet|crowded|expensive|friendly|remote|sunny|rainy|noisy|charming|modern|old|clean"
    ),
    "topic": (
        "renewable energy|urban farming|online education|space debris|coral restoration|"
        "digital payments|"
        "handmade textiles|public transport|ocean shipping|battery recycling|medical imaging|"
        "rural broadband|wildlife photography|folk music|mountain rescue|food packaging|"
        "water filtration|"
        "board games|film restoration|language learning"
    ),
    "venue": (
        "town hall|local library|conference centre|university campus|community garden|city museum|"
        "harbour office|sports arena|village school|old factory|shopping arcade|railway depot"
    ),
    "feeling": (
        "surprised|proud|worried|grateful|frustrated|hopeful|sceptical|relieved|exhausted|excited|"
        "overwhelmed|determined"
    ),
    "trait": (
        "patient|stubborn|generous|meticulous|outspoken|shy|ambitious|practical|curious|reserved|"
        "cheerful|disciplined"
    ),
    "trend": (
        "rose|fell|doubled|stayed flat|dropped sharply|recovered slowly|grew steadily|declined"
    ),
    "creature": (
        "beetle|heron|lizard|moth|salamander|orchid|mackerel|bat|fern|tortoise|crab|warbler|snail|"
        "cactus|"
        "trout|otter"
    ),
    "habitat": (
        "wet grassland|dry scrub|mountain streams|tidal mudflats|pine forest|limestone caves|"
        "shallow lakes|coastal dunes|cloud forest|river deltas"
    ),
    "colour": (
        "pale yellow|dark brown|reddish|bluish grey|olive green|black and white|silver|"
        "bright orange|"
        "cream|deep purple"
    ),
    "vessel": (
        "cruiser|schooner|frigate|steamship|destroyer|ferry|tugboat|submarine|trawler|barge"
    ),
    "genre": (
        "drama|comedy|documentary|thriller|musical|role playing game|concept album|novel|"
        "television series|platform game|short film|opera"
    ),
    "verb": (
        "improve|rebuild|study|replace|finance|promote|abandon|document|expand|simplify|inspect|"
        "redesign"
    ),
    "thing": (
        "bridge|archive|kitchen|warehouse|orchard|clinic|workshop|website|festival|apartment|"
        "garage|"
        "studio|pipeline|playground|greenhouse"
    ),
    "opinion": (
        "a turning point|a mistake|long overdue|a modest start|the right decision|"
        "a risk worth taking|"
        "too expensive|a quiet success|better than expected"
    ),
    "link": (
        "However|Meanwhile|In addition|As a result|For this reason|At the same time|Afterwards|"
        "In contrast|By then|Still|In the end|Despite this"
    ),
    "advice": (
        "drink plenty of fluids|keep the area clean and dry|avoid lifting heavy weights|"
        "eat smaller meals|get enough sleep|do light stretching|use a soft brush|stop smoking|"
        "keep a diary of the attacks|apply a warm compress|check your sugar level|"
        "wear loose cotton clothes"
    ),
    "specialist": (
        "dermatologist|cardiologist|neurologist|gynecologist|orthopedic surgeon|dentist|physician|"
        "psychiatrist|gastroenterologist|urologist|pulmonologist|physiotherapist"
    ),
    "quality": ("mild|severe|occasional|constant|sudden|throbbing|persistent|sharp"),
}

PHRASES: dict[str, tuple[str, ...]] = {
    name: tuple(text.split("|")) for name, text in _LISTS.items()
}
