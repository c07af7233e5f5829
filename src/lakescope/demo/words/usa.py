"""States of the USA with code, capital, region, first ZIP prefix and three cities each; no city name occurs twice.

Unique city names make ``city -> state`` a true functional dependency of everything generated from this list.
"""

from __future__ import annotations

from typing import NamedTuple


class UsState(NamedTuple):
    """One state; ``zip3`` is the lowest three-digit ZIP prefix used there (leading zeros matter)."""

    name: str
    code: str
    capital: str
    region: str
    zip3: str
    cities: tuple[str, ...]


_LINES = """
Alabama|AL|Montgomery|South|350|Birmingham,Mobile,Huntsville
Alaska|AK|Juneau|West|995|Anchorage,Fairbanks,Ketchikan
Arizona|AZ|Phoenix|West|850|Tucson,Mesa,Flagstaff
Arkansas|AR|Little Rock|South|716|Fayetteville,Hot Springs,Jonesboro
California|CA|Sacramento|West|900|Los Angeles,San Diego,Fresno
Colorado|CO|Denver|West|800|Boulder,Fort Collins,Pueblo
Connecticut|CT|Hartford|Northeast|060|New Haven,Stamford,Bridgeport
Delaware|DE|Dover|South|197|Wilmington,Newark,Lewes
Florida|FL|Tallahassee|South|320|Miami,Tampa,Orlando
Georgia|GA|Atlanta|South|300|Savannah,Macon,Athens
Hawaii|HI|Honolulu|West|967|Hilo,Kailua,Lahaina
Idaho|ID|Boise|West|832|Pocatello,Twin Falls,Nampa
Illinois|IL|Springfield|Midwest|600|Chicago,Peoria,Naperville
Indiana|IN|Indianapolis|Midwest|460|Fort Wayne,Evansville,South Bend
Iowa|IA|Des Moines|Midwest|500|Cedar Rapids,Davenport,Ames
Kansas|KS|Topeka|Midwest|660|Wichita,Lawrence,Salina
Kentucky|KY|Frankfort|South|400|Louisville,Lexington,Owensboro
Louisiana|LA|Baton Rouge|South|700|New Orleans,Shreveport,Lafayette
Maine|ME|Augusta|Northeast|039|Bangor,Lewiston,Biddeford
Maryland|MD|Annapolis|South|206|Baltimore,Frederick,Rockville
Massachusetts|MA|Boston|Northeast|010|Worcester,Cambridge,Lowell
Michigan|MI|Lansing|Midwest|480|Detroit,Ann Arbor,Grand Rapids
Minnesota|MN|Saint Paul|Midwest|550|Minneapolis,Duluth,Rochester
Mississippi|MS|Jackson|South|386|Biloxi,Gulfport,Tupelo
Missouri|MO|Jefferson City|Midwest|630|Saint Louis,Kansas City,Branson
Montana|MT|Helena|West|590|Billings,Missoula,Bozeman
Nebraska|NE|Lincoln|Midwest|680|Omaha,Kearney,Grand Island
Nevada|NV|Carson City|West|889|Las Vegas,Reno,Elko
New Hampshire|NH|Concord|Northeast|030|Manchester,Nashua,Keene
New Jersey|NJ|Trenton|Northeast|070|Jersey City,Paterson,Hoboken
New Mexico|NM|Santa Fe|West|870|Albuquerque,Las Cruces,Roswell
New York|NY|Albany|Northeast|100|New York City,Buffalo,Syracuse
North Carolina|NC|Raleigh|South|270|Charlotte,Durham,Asheville
North Dakota|ND|Bismarck|Midwest|580|Fargo,Grand Forks,Minot
Ohio|OH|Columbus|Midwest|430|Cleveland,Cincinnati,Toledo
Oklahoma|OK|Oklahoma City|South|730|Tulsa,Norman,Stillwater
Oregon|OR|Salem|West|970|Portland,Eugene,Bend
Pennsylvania|PA|Harrisburg|Northeast|150|Philadelphia,Pittsburgh,Erie
Rhode Island|RI|Providence|Northeast|028|Newport,Cranston,Pawtucket
South Carolina|SC|Columbia|South|290|Spartanburg,Greenville,Myrtle Beach
South Dakota|SD|Pierre|Midwest|570|Sioux Falls,Rapid City,Deadwood
Tennessee|TN|Nashville|South|370|Memphis,Knoxville,Chattanooga
Texas|TX|Austin|South|750|Houston,Dallas,El Paso
Utah|UT|Salt Lake City|West|840|Provo,Ogden,Moab
Vermont|VT|Montpelier|Northeast|050|Burlington,Rutland,Stowe
Virginia|VA|Richmond|South|220|Norfolk,Alexandria,Roanoke
Washington|WA|Olympia|West|980|Seattle,Tacoma,Spokane
West Virginia|WV|Charleston|South|247|Morgantown,Huntington,Wheeling
Wisconsin|WI|Madison|Midwest|530|Milwaukee,Green Bay,Kenosha
Wyoming|WY|Cheyenne|West|820|Casper,Laramie,Cody
"""


def _states() -> tuple[UsState, ...]:
    rows = (line.split("|") for line in _LINES.split("\n") if line)
    return tuple(
        UsState(name, code, capital, region, zip3, tuple(cities.split(",")))
        for name, code, capital, region, zip3, cities in rows
    )


STATES: tuple[UsState, ...] = _states()
