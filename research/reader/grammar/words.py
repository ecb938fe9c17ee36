"""Words for the grammars: lists, and invented values, so that unseen ones are the norm."""

from __future__ import annotations

import random
from collections.abc import Callable

_ONSETS = "b br c ch cl d dr f fl g gr h j k kl l m n p pr qu r s sh sk st t th tr v w y z".split()
_VOWELS = "a e i o u ai ea ee ia io oa ou".split()
_CODAS = [*"b ck d g l ll m n nd ng nt p r rd rk rn s ss st t tt x z".split(), *[""] * 8]
_FIRST = (
    "James Mary Robert Linda Ahmed Fatima Wei Mei Carlos Lucia Ivan Olga Kofi Ama Hiro Yuki "
    "Pierre Chloe Lars "
    "Ingrid Raj Priya Omar Leila Diego Sofia Mateo Elena Noah Emma Liam Ava Ethan Zoe Lucas Nora "
    "Hugo Clara Felix "
    "Ruth Samuel Grace Victor Alice Martin Julia Peter Anna Thomas Sarah Daniel Laura Kevin Paula "
    "Brian Helen"
).split()
_LAST = (
    "Smith Johnson Garcia Mueller Rossi Tanaka Kim Nguyen Patel Khan Silva Kowalski Novak Jensen "
    "Larsson Dubois "
    "Moreau Okafor Mensah Haddad Cohen Levy Ortiz Romero Vargas Petrov Ivanova Costa Fischer "
    "Weber Schmidt Becker "
    "Clark Lewis Walker Hall Young King Wright Hill Scott Green Adams Baker Nelson Carter "
    "Mitchell Perez Turner"
).split()
_CITIES = (
    "Lisbon Kyoto Hanoi Oslo Cusco Prague Seville Dakar Tbilisi Galway Quito Bergen Zadar Bruges "
    "Porto Riga Fez "
    "Lima Osaka Split Perth Cork Hobart Naples"
).split()
_MONTHS = (
    "January February March April May June July August September October November December"
).split()


def invented(rng: random.Random, syllables: int) -> str:
    """A pronounceable word that no corpus holds."""
    return "".join(
        rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(syllables)
    )


class Values:
    """Draws one value per slot name; the same generator state gives the same values."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.makers: dict[str, Callable[[], str]] = {
            "word": lambda: invented(rng, rng.randint(2, 3)),
            "first": self.first,
            "last": self.last,
            "person": lambda: f"{self.first()} {self.last()}",
            "doctor": lambda: f"Dr. {self.last()}",
            "drug": self.drug,
            "place": self.place,
            "org": self.organisation,
            "age": lambda: str(rng.randint(3, 92)),
            "number": lambda: str(
                rng.choice([rng.randint(2, 12), rng.randint(10, 99), rng.randint(100, 999)])
            ),
            "big": lambda: f"{rng.randint(1, 980)},{rng.randint(0, 999):03d}",
            "year": lambda: str(rng.randint(1790, 2026)),
            "small": lambda: str(rng.randint(2, 14)),
            "dose": self.dose,
            "money": self.money,
            "date": self.date,
            "phone": lambda: (
                f"{rng.randint(200, 989)}-{rng.randint(200, 999)}-{rng.randint(0, 9999):04d}"
            ),
            "email": self.email,
            "code": self.code,
            "time": lambda: (
                f"{rng.randint(1, 12)}:{rng.choice(['00', '15', '30', '45', '20'])} "
                f"{rng.choice(['am', 'pm'])}"
            ),
            "bp": lambda: f"{rng.randint(95, 190)}/{rng.randint(55, 115)}",
            "lab": lambda: f"{rng.randint(1, 19)}.{rng.randint(0, 9)}",
            "percent": lambda: f"{rng.randint(1, 98)} {rng.choice(['percent', '%', 'per cent'])}",
            "street": self.street,
        }

    def first(self) -> str:
        """A given name, half of them invented."""
        rng = self.rng
        return (
            rng.choice(_FIRST)
            if rng.random() < 0.5
            else invented(rng, rng.randint(1, 2)).capitalize()
        )

    def last(self) -> str:
        """A family name, most of them invented."""
        return (
            self.rng.choice(_LAST)
            if self.rng.random() < 0.4
            else invented(self.rng, 2).capitalize()
        )

    def drug(self) -> str:
        """An invented drug with a familiar ending."""
        endings = "ine ol azole cillin pril statin mab ide amide one ixen tan".split()
        return invented(self.rng, 2) + self.rng.choice(endings)

    def place(self) -> str:
        """A town, mostly invented."""
        if self.rng.random() < 0.3:
            return self.rng.choice(_CITIES)
        endings = [
            "",
            "ville",
            " Bay",
            "burg",
            " Falls",
            "stad",
            "",
            "ton",
            " Creek",
            "",
            " Island",
        ]
        return invented(self.rng, 2).capitalize() + self.rng.choice(endings)

    def organisation(self) -> str:
        """A company or institution."""
        kinds = (
            " Ltd| Clinic| Group| Partners| Hospital| Bank| Labs"
            "| & Sons| Logistics| Institute| Foods"
        ).split("|")
        stem = self.rng.choice([invented(self.rng, 2).capitalize(), self.last()])
        return stem + self.rng.choice(kinds)

    def dose(self) -> str:
        """An amount of a drug."""
        amounts = [5, 10, 15, 20, 25, 40, 50, 75, 100, 125, 150, 200, 250, 300, 400, 500, 600, 850]
        units = ["mg", "mg", "mg", "mcg", "ml", "units"]
        return f"{self.rng.choice(amounts)} {self.rng.choice(units)}"

    def money(self) -> str:
        """An amount of money, with a thousands comma half the time."""
        rng = self.rng
        amount = rng.choice(
            [str(rng.randint(12, 990)), f"{rng.randint(1, 98)},{rng.randint(0, 999):03d}"]
        )
        return rng.choice(["$", "$", "€", "£"]) + amount

    def date(self) -> str:
        """A day, with its year half the time."""
        day = f"{self.rng.randint(1, 28)} {self.rng.choice(_MONTHS)}"
        return day + self.rng.choice(["", f" {self.rng.randint(1988, 2026)}"])

    def email(self) -> str:
        """An e-mail address at an invented domain."""
        rng = self.rng
        tail = rng.choice([invented(rng, 1), str(rng.randint(1, 99))])
        host = f"{invented(rng, 2)}.{rng.choice(['com', 'org', 'net', 'io'])}"
        name = rng.choice([self.first(), self.last()]).lower()
        return f"{name}{rng.choice(['.', '_', ''])}{tail}@{host}"

    def code(self) -> str:
        """A reference number of letters and digits."""
        letters = "ABCDEFGHKLMNPRSTVWX"
        return (
            self.rng.choice(letters)
            + self.rng.choice(letters + "-")
            + str(self.rng.randint(100, 99999))
        )

    def street(self) -> str:
        """A street address."""
        name = self.rng.choice([invented(self.rng, 2).capitalize(), self.last()])
        kinds = ["Street", "Road", "Lane", "Avenue", "Square"]
        return f"{self.rng.randint(1, 999)} {name} {self.rng.choice(kinds)}"


# Word lists the grammars draw from, one string per list, items apart by a bar.

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
