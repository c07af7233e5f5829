"""Words of trade: products, companies, streets, jobs, schools, and snippets for free text."""

from __future__ import annotations

CATEGORIES: tuple[tuple[str, str], ...] = (
    ("Coffee", "Grocery"),
    ("Tea", "Grocery"),
    ("Snacks", "Grocery"),
    ("Spices", "Grocery"),
    ("Lamps", "Home"),
    ("Chairs", "Home"),
    ("Desks", "Office"),
    ("Notebooks", "Office"),
    ("Pens", "Office"),
    ("Headphones", "Electronics"),
    ("Cables", "Electronics"),
    ("Backpacks", "Outdoor"),
    ("Tents", "Outdoor"),
    ("Bottles", "Outdoor"),
)

ADJECTIVES: tuple[str, ...] = tuple(
    """
Amber Arctic Bold Bright Classic Copper Coral Cosmic Crisp Dark Desert Eager Early Emerald Evergreen Fine Forest Frosty
Gentle Golden Grand Harbor Highland Honest Indigo Ivory Jolly Kind Lively Lucky Lunar Maple Meadow Mellow Midnight
Mighty Misty Modern Nimble Noble Northern Ocean Olive Pacific Plain Polar Prairie Quiet Rapid Royal Rustic Sandy
Scarlet Silent Silver Simple Smart Smooth Solar Southern Stone Sunny Swift Tidal Urban Velvet Vivid Wild Winter
""".split()
)

NOUNS: tuple[str, ...] = tuple(
    """
Anchor Arrow Badge Beacon Birch Bridge Brook Canyon Cedar Comet Compass Crane Crest Dune Eagle Falcon Feather Fern Field
Flint Fox Garden Glacier Harvest Haven Heron Hill Horizon Island Kettle Lagoon Lake Lantern Leaf Lynx Mesa Mill Mountain
Oak Orchard Otter Owl Peak Pebble Pine Planet Pond Raven Reef Ridge River Rock Rose Sail Shore Sparrow Spring Star
Stream Summit Thistle Timber Tower Trail Valley Wave Willow Wind Wolf
""".split()
)

COMPANY_ENDINGS: tuple[str, ...] = (
    "Ltd",
    "Inc",
    "GmbH",
    "LLC",
    "Group",
    "Trading",
    "& Sons",
    "Works",
    "Supply",
    "Partners",
)

STREETS: tuple[str, ...] = tuple(
    """
Main Oak Pine Maple Cedar Elm Washington Lake Hill Park Walnut Spring North Ridge Church Willow Mill Sunset Railroad
Jefferson Center Highland Forest River Jackson Franklin Lincoln College Madison Chestnut Prospect Grove Meadow Union
""".split()
)

STREET_KINDS: tuple[str, ...] = ("St", "Ave", "Rd", "Blvd", "Ln", "Dr", "Ct", "Way")

DEPARTMENTS: tuple[tuple[str, str], ...] = (
    ("FIN", "Finance"),
    ("ENG", "Engineering"),
    ("OPS", "Operations"),
    ("MKT", "Marketing"),
    ("SAL", "Sales"),
    ("HRM", "People"),
    ("LEG", "Legal"),
    ("SUP", "Support"),
    ("LOG", "Logistics"),
    ("RND", "Research"),
)

ROLES: tuple[str, ...] = ("clerk", "cashier", "team lead", "store manager", "buyer", "analyst", "driver", "technician")

INDUSTRIES: tuple[str, ...] = (
    "Retail",
    "Energy",
    "Health care",
    "Education",
    "Transport",
    "Software",
    "Construction",
    "Agriculture",
    "Hospitality",
    "Insurance",
)

CARRIERS: tuple[str, ...] = ("BlueVan", "ParcelPost", "RoadRunner", "AirOne", "CityBike")

ORDER_STATES: tuple[str, ...] = ("new", "paid", "packed", "shipped", "delivered", "cancelled")

PAYMENT_METHODS: tuple[str, ...] = ("card", "bank transfer", "invoice", "gift voucher", "cash")

RETURN_REASONS: tuple[str, ...] = ("too small", "too large", "damaged", "wrong item", "changed mind", "late")

PAGES: tuple[str, ...] = (
    "/",
    "/search",
    "/cart",
    "/checkout",
    "/account",
    "/help",
    "/help/returns",
    "/offers",
    "/stores",
    "/blog",
    "/blog/spring",
    "/product",
    "/product/reviews",
    "/careers",
)

EVENT_KINDS: tuple[str, ...] = ("view", "click", "scroll", "add_to_cart", "remove_from_cart", "purchase", "search")

SUBJECTS: tuple[str, ...] = ("mathematics", "reading", "science", "history")

SCHOOL_KINDS: tuple[str, ...] = ("Elementary School", "Middle School", "High School", "Academy", "Charter School")

AIRLINES: tuple[tuple[str, str], ...] = (
    ("QX", "Quill Air"),
    ("NB", "Northbird"),
    ("SV", "Silver Vale"),
    ("PA", "Pacific Arrow"),
    ("MT", "Meridian"),
    ("GL", "Glacier Lines"),
    ("HB", "Harborjet"),
)

AIRCRAFT: tuple[tuple[str, int], ...] = (
    ("A320", 180),
    ("A321", 220),
    ("B737-800", 189),
    ("E190", 100),
    ("CRJ900", 90),
    ("B787-9", 290),
    ("ATR72", 72),
)

PHRASES: tuple[str, ...] = (
    "arrived on time",
    "box was damaged",
    "please call before delivery",
    "left at the front desk",
    "works as described",
    "colour differs from the picture",
    "second order this month",
    "gift wrap requested",
    "asked for an invoice",
    "address could not be verified",
    "customer will collect",
    "replaced under warranty",
    "no further action needed",
    "waiting for a reply",
    "forwarded to the supplier",
    "checked by the night shift",
    "payment confirmed by phone",
    "size too small",
    "exchanged for a larger one",
    "refund issued",
)
